import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

/** A source text to lint as if it were the file at `path`. */
interface LintedText {
  readonly path: string;
  readonly text: string;
}

interface Violation extends LintedText {
  readonly rule: string;
  /** Part of the expected message; tells apart the several things that one rule refuses. */
  readonly message?: string;
}

const PLAIN_FILE = 'apps/auth-service/src/token/fixture.ts';
const SPEC = 'apps/auth-service/src/token/fixture.spec.ts';
const TIME = 'libs/time/src/fixture.ts';
const BOUNDARIES = 'house/module-boundaries';
const SYNTAX = 'no-restricted-syntax';
const FOLDER_CYCLE = 'house/no-folder-cycle';
const SKIPPED = 'A focused, skipped or planned test';
const SLEEPS = 'No sleeps in tests';

const statements = (count: number): string => 'sum += 1;\n'.repeat(count);

const VIOLATIONS: Readonly<Record<string, Violation>> = {
  'an app that imports another app': {
    path: 'apps/settings-service/src/settings/fixture.handler.ts',
    text: "import { configSchema } from '../../../auth-service/src/config';",
    rule: BOUNDARIES,
    message: 'relative',
  },
  'a circle of projects': {
    path: 'libs/service-defaults/src/fixture.ts',
    text: "import { inTransaction } from '@platform/database';",
    rule: BOUNDARIES,
    message: 'Circular dependency',
  },
  'a client that imports a platform lib': {
    path: 'libs/settings-client/src/fixture.ts',
    text: "import { ProblemException } from '@platform/service-defaults';",
    rule: BOUNDARIES,
    message: 'type:client',
  },
  'a contract that imports the broker’s driver': {
    path: 'libs/contracts/src/fixture.ts',
    text: "import { connect } from 'amqplib';",
    rule: BOUNDARIES,
    message: 'amqplib',
  },
  'a domain that imports a contract': {
    path: 'libs/personas/src/fixture.ts',
    text: "import { ALL_CONTRACTS } from '@platform/contracts';",
    rule: BOUNDARIES,
    message: 'type:domain',
  },
  'a domain that imports the framework': {
    path: TIME,
    text: "import { Injectable } from '@nestjs/common';",
    rule: BOUNDARIES,
    message: '@nestjs',
  },
  'an e2e project that imports a platform lib': {
    path: 'apps/platform-e2e/src/fixture.ts',
    text: "import { ProblemException } from '@platform/service-defaults';",
    rule: BOUNDARIES,
    message: 'type:e2e',
  },
  'production code that imports the testing lib': {
    path: 'apps/task-service/src/schedules/fixture.handler.ts',
    text: "import { eventually } from '@platform/testing';",
    rule: BOUNDARIES,
    message: 'type:app',
  },
  'production code that imports a tool': {
    path: 'apps/task-service/src/schedules/fixture.service.ts',
    text: "import { eventually } from '#platform/waiting.ts';",
    rule: BOUNDARIES,
    message: 'type:app',
  },
  'the testing lib that imports an app': {
    path: 'libs/testing/src/fixture.ts',
    text: "import { configSchema } from '../../../apps/settings-service/src/config';",
    rule: BOUNDARIES,
    message: 'relative',
  },
  'a tool that imports a platform lib': {
    path: 'tools/platform/fixture.ts',
    text: "import { ProblemException } from '@platform/service-defaults';",
    rule: BOUNDARIES,
    message: 'type:tool',
  },
  'a tool that imports what proves the platform': {
    path: 'tools/start/fixture.ts',
    text: "import { CheckBuilder } from '#verification/audit/check.ts';",
    rule: BOUNDARIES,
    message: 'type:tool',
  },
  'a tool that imports a tool by a relative path': {
    path: 'verification/audit/fixture.ts',
    text: "import { eventually } from '../../tools/platform/waiting.ts';",
    rule: BOUNDARIES,
    message: 'relative',
  },
  'a circle of files': {
    path: 'libs/contracts/src/message-contract.ts',
    text: "export { TaskInstanceCompletedEvent } from './main-bus-messages';",
    rule: 'house/no-import-cycle',
    message: 'libs/contracts/src/main-bus-messages.ts → libs/contracts/src/message-contract.ts',
  },
  'two folders that import each other': {
    path: 'libs/messaging/src/broker/fixture.ts',
    text: "import { ResponseSender } from '../consuming/response-sender';",
    rule: FOLDER_CYCLE,
    message: 'src/broker → src/consuming → src/broker (by libs/messaging/src/consuming/',
  },
  'two folders that import each other’s types': {
    path: 'libs/access-tokens/src/token/fixture.ts',
    text: "import type { KeySource } from '../keys/keys';",
    rule: FOLDER_CYCLE,
    message: 'src/token → src/keys → src/token',
  },
  'a folder that imports the folder that contains it': {
    path: 'verification/scenarios/chaos/engines/fixture.ts',
    text: "import type { Testbed } from '../testbed.ts';",
    rule: FOLDER_CYCLE,
    message: 'scenarios/chaos/engines → scenarios/chaos → scenarios/chaos/engines',
  },
  'a lib whose root and folder import each other': {
    path: 'libs/testing/src/fixture.ts',
    text: "export { apiDocument } from './api-document/documents';",
    rule: FOLDER_CYCLE,
    message: 'src → src/api-document → src',
  },
  'a circle of three folders': {
    path: 'libs/service-defaults/src/tracing/fixture.ts',
    text: "import { secret } from '../paging/paging';",
    rule: FOLDER_CYCLE,
    message: 'src/tracing → src/paging → src/config → src/tracing',
  },
  'a plain file that imports Nest': {
    path: PLAIN_FILE,
    text: "import { HttpException } from '@nestjs/common';",
    rule: 'house/plain-file-is-pure',
  },
  'a folder whose name says nothing': {
    path: 'apps/auth-service/src/utils/dates.ts',
    text: 'export const secondsPerDay = 86_400;',
    rule: 'house/telling-names',
    message: "'utils' says nothing",
  },
  'a second barrel': {
    path: 'apps/auth-service/src/token/index.ts',
    text: "export { issue } from './issue';",
    rule: 'house/telling-names',
    message: 'only a lib has an index.ts',
  },
  'a TODO without a reason': {
    path: PLAIN_FILE,
    text: '// TODO: make this faster',
    rule: 'house/todo-has-reason',
  },
  'the machine’s clock': {
    path: PLAIN_FILE,
    text: 'export const issuedAt = (): Date => new Date();',
    rule: 'house/no-wall-clock',
  },
  'a spread object literal': {
    path: PLAIN_FILE,
    text: 'export const withPersona = (claims: object): object => ({ ...claims, ...{ persona: 1 } });',
    rule: SYNTAX,
    message: 'Write the members out',
  },
  'a spread array literal': {
    path: PLAIN_FILE,
    text: 'export const withFirst = (others: number[]): number[] => [...[1], ...others];',
    rule: SYNTAX,
    message: 'Write the members out',
  },
  'a comment of more than 110 columns': {
    path: PLAIN_FILE,
    text: `  // ${'x'.repeat(106)}`,
    rule: 'max-len',
  },
  'a default export': {
    path: TIME,
    text: 'export default 42;',
    rule: SYNTAX,
    message: 'Export by name, so',
  },
  'an export of everything': {
    path: TIME,
    text: "export * from './clock';",
    rule: SYNTAX,
    message: 'Export by name: a reader',
  },
  'the environment outside the configuration': {
    path: PLAIN_FILE,
    text: 'export const secret = process.env.TOKEN_SECRET;',
    rule: SYNTAX,
    message: 'The environment is read only',
  },
  // The names of the test functions are concatenated, so that a text search for skipped tests does not find
  // these.
  'a skipped test': {
    path: SPEC,
    text: `it.${'skip'}('would fail', () => { expect(1).toBe(2); });`,
    rule: SYNTAX,
    message: SKIPPED,
  },
  'a test that is skipped on a condition': {
    path: SPEC,
    text: `(process.platform === 'linux' ? it : it.${'skip'})('would fail', () => { expect(1).toBe(2); });`,
    rule: SYNTAX,
    message: SKIPPED,
  },
  'a skipped table of tests': {
    path: SPEC,
    text: `it.${'skip'}.each([1, 2])('would fail', (number) => { expect(number).toBe(3); });`,
    rule: SYNTAX,
    message: SKIPPED,
  },
  'a skipped group of tests': {
    path: SPEC,
    text: `describe.${'skip'}('all of it', () => { it('would fail', () => { expect(1).toBe(2); }); });`,
    rule: SYNTAX,
    message: SKIPPED,
  },
  'a test that is yet to be written': {
    path: SPEC,
    text: `it.${'todo'}('works');`,
    rule: SYNTAX,
    message: SKIPPED,
  },
  'a test that is crossed out': {
    path: SPEC,
    text: `${'x'}it('would fail', () => { expect(1).toBe(2); });`,
    rule: SYNTAX,
    message: SKIPPED,
  },
  'a test that returns early': {
    path: SPEC,
    text: "it('would fail', () => { if (process.platform !== 'linux') return; expect(1).toBe(2); });",
    rule: SYNTAX,
    message: 'returns early',
  },
  'services that are closed after the check of their logs': {
    path: SPEC,
    text: 'afterAll(() => service.close());',
    rule: SYNTAX,
    message: 'Within describe()',
  },
  'a sleeping test': {
    path: SPEC,
    text: "it('waits', async () => { await new Promise((resolve) => setTimeout(resolve, 500)); });",
    rule: SYNTAX,
    message: SLEEPS,
  },
  'a test with a sleep under another name': {
    path: SPEC,
    text: "import { setTimeout as delay } from 'node:timers/promises';\nit('waits', () => delay(500));",
    rule: SYNTAX,
    message: SLEEPS,
  },
  'a test that makes itself a sleep': {
    path: SPEC,
    text: "import { promisify } from 'node:util';\nconst delay = promisify(setTimeout);\nit('waits', () => delay(500));",
    rule: SYNTAX,
    message: SLEEPS,
  },
  'a swallowed error': {
    path: PLAIN_FILE,
    text: 'export function parse(text: string): unknown { try { return JSON.parse(text); } catch { return null; } }',
    rule: SYNTAX,
    message: 'Name the error',
  },
  'a class of seven dependencies': {
    path: PLAIN_FILE,
    text: `export class Everything { constructor(${'abcdefg'.replaceAll(/./g, 'readonly $&: number, ')}) {} }`,
    rule: SYNTAX,
    message: 'More than six dependencies',
  },
  'a long file': {
    path: PLAIN_FILE,
    text: `let sum = 0;\n${statements(450)}`,
    rule: 'max-lines',
  },
  'a long function': {
    path: PLAIN_FILE,
    text: `export function long(): void {\nlet sum = 0;\n${statements(60)}}`,
    rule: 'max-lines-per-function',
  },
};

const ACCEPTED: Readonly<Record<string, LintedText>> = {
  'a handler that uses the framework and a domain, with a reasoned TODO': {
    path: 'apps/auth-service/src/token/fixture.handler.ts',
    text: `
import { Injectable } from '@nestjs/common';
import { Persona, hasPersona } from '@platform/personas';

// TODO(needs the customer's answer on owners): decide whether owners count.
@Injectable()
export class FixtureHandler {
  isAllowed(personas: number): boolean {
    return hasPersona(personas, Persona.InternalPartner);
  }
}
`,
  },
  'a comment of 110 columns, and a longer line of code': {
    path: TIME,
    text: `// ${'x'.repeat(107)}\nexport const text = '${'x'.repeat(110)}';\n`,
  },
  'a file at the root of an app that imports folders which import its configuration': {
    path: 'apps/settings-service/src/fixture.ts',
    text: "import { administer } from './admin/administration';\n\nexport const run = administer;\n",
  },
  'a Nest module that imports a folder which imports its own': {
    path: 'libs/access-tokens/src/keys/fixture.module.ts',
    text: "import { AccessTokenVerifier } from '../verification/access-token-verifier';\n\nexport const verifier = AccessTokenVerifier;\n",
  },
  'an e2e project that imports a tool': {
    path: 'apps/platform-e2e/src/fixture.ts',
    text: "import { guide } from '#start/terminal.ts';\n\nexport const text = guide;\n",
  },
  'a spec that imports the testing lib': {
    path: 'apps/task-service/src/schedules/fixture.spec.ts',
    text: "import { eventually } from '@platform/testing';\n\nit('waits', () => eventually(() => 1));\n",
  },
  'the testing lib that imports a tool': {
    path: 'libs/testing/src/fixture.ts',
    text: "import { eventually } from '#platform/waiting.ts';\n\nexport const wait = eventually;\n",
  },
};

/** Returns ESLint's problems in each text, as `rule: message`. */
function lint(texts: readonly LintedText[]): string[][] {
  const output = execFileSync(process.execPath, [join(__dirname, 'lint-texts.ts')], {
    cwd: join(__dirname, '../..'),
    encoding: 'utf8',
    input: JSON.stringify(texts),
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  return JSON.parse(output) as string[][];
}

describe('boundaries and house rules', () => {
  const texts = { ...VIOLATIONS, ...ACCEPTED };
  const reports = lint(Object.values(texts));
  const reported = Object.fromEntries(Object.keys(texts).map((name, index) => [name, reports[index]]));

  it.each(Object.entries(VIOLATIONS))('%s is refused by its rule', (name, { rule, message = '' }) => {
    const ofRule = reported[name]?.filter((line) => line.startsWith(`${rule}: `));
    expect(ofRule).toContainEqual(expect.stringContaining(message));
  });

  it.each(Object.keys(ACCEPTED))('%s is accepted', (name) => {
    expect(reported[name]).toEqual([]);
  });

  it('has a violation of every house rule', () => {
    const violated = new Set(Object.values(VIOLATIONS).map(({ rule }) => rule));
    for (const rule of [
      'module-boundaries',
      'plain-file-is-pure',
      'telling-names',
      'todo-has-reason',
      'no-wall-clock',
      'no-import-cycle',
      'no-folder-cycle',
    ]) {
      expect(violated).toContain(`house/${rule}`);
    }
  });
});
