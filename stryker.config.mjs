// Mutation tests of the rules, run by hand: docs/decisions/0033-mutation-tests.md.
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const { RULES = '' } = process.env;

const TASKS = 'apps/task-service/src';
const AUTH = 'apps/auth-service/src';

/** Files of rules; the unit tests beside them have to notice, and those of other files that are named. */
const GROUPS = {
  time: { files: ['libs/time/src/index'], tests: ['libs/time/src/time'] },
  personas: { files: ['libs/personas/src/index'], tests: ['libs/personas/src/personas'] },
  folding: {
    files: ['libs/setting-names/src/index', 'libs/setting-names/src/case-folding'],
    tests: ['libs/setting-names/src/setting-name'],
  },
  cron: { files: [`${TASKS}/recurrence/cron-expression`] },
  recurrence: {
    files: [`${TASKS}/recurrence/recurrence`],
    tests: [`${TASKS}/recurring-generation/generation-plan`],
  },
  occurrences: { files: [`${TASKS}/recurrence/occurrences`, `${TASKS}/recurrence/time-zone`] },
  generation: {
    files: [`${TASKS}/recurring-generation/generation-plan`, `${TASKS}/recurring-generation/release-plan`],
  },
  fires: { files: [`${TASKS}/scheduler/due-fire`] },
  scope: { files: [`${TASKS}/access/caller-scope.service`], tests: [`${TASKS}/access/caller-scope`] },
  applications: { files: [`${AUTH}/applications/application`] },
  identity: { files: [`${AUTH}/identity/authority`, `${AUTH}/identity/identity`] },
  revocations: { files: [`${AUTH}/revocations/revocation`] },
  grants: { files: [`${AUTH}/token/grant-personas`] },
  refresh: {
    files: [`${AUTH}/token/refresh-state`, `${AUTH}/token/token-claims`],
    tests: [`${AUTH}/token/refresh-token`],
  },
  access: {
    files: ['libs/access-tokens/src/nest/access-rules', 'libs/access-tokens/src/token/held-facilities'],
  },
  json: {
    files: [
      'apps/settings-service/src/settings/json-scanner',
      'apps/settings-service/src/settings/setting-value',
    ],
  },
  envelope: {
    files: ['address', 'body-limits', 'create-envelope', 'read-envelope'].map(
      (name) => `libs/messaging/src/envelope/${name}`,
    ),
    tests: ['libs/messaging/src/envelope/envelope'],
  },
};

if (!Object.hasOwn(GROUPS, RULES)) throw new Error(`RULES must be one of ${Object.keys(GROUPS).join(', ')}`);
const { files, tests = [] } = GROUPS[RULES];

/** @type {import('@stryker-mutator/api/core').PartialStrykerOptions} */
export default {
  mutate: files.map((file) => `${file}.ts`),
  testRunner: 'jest',
  jest: {
    configFile: 'jest.unit.cjs',
    config: { testMatch: [...files, ...tests].map((file) => `**/${file}.spec.ts`) },
  },
  coverageAnalysis: 'perTest',
  concurrency: 1,
  timeoutMS: 10_000,
  // Jest needs no tsconfig.json, and with it Stryker would want a TypeScript of its own.
  ignorePatterns: ['/.nx', '/.platform', '/coverage', '/dist', '/docs', '/tsconfig*.json', '/verification'],
  // Outside of the checkout, where Jest would find every package twice.
  tempDirName: join(tmpdir(), 'platform-mutation'),
  reporters: ['clear-text', 'json'],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  jsonReporter: { fileName: `test-results/mutation/${RULES}.json` },
};
