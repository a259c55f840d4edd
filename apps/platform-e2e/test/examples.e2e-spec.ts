import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { testsThatNeed } from '@platform/testing';
import { tokenVariables } from '#platform/environments.ts';
import type { Variables } from '#platform/state-folder.ts';
import type { TestPlatform } from '#platform/test-platform.ts';
import { guide } from '#start/terminal.ts';
import {
  END_OF_EXAMPLE,
  type Example,
  ExampleFolder,
  hasCommand,
  readExamples,
  shellScript,
  typeScriptModule,
} from '../src/examples';
import { startPlatform } from '../src/platform';
import { ExampleTraffic } from '../src/recording-proxy';
import { BODIES, CALLING_BY_SHELL, CALLING_BY_TYPESCRIPT, JWKS, VECTOR_CODE } from './expected-calls';

const WORKSPACE = join(__dirname, '../../..');
const START_TIMEOUT_MS = 180_000;
const RUN_TIMEOUT_MS = 180_000;

const [CALLING, AUTH_CLIENT, SETTINGS_CLIENT] = [
  'docs/calling-auth-service.md',
  'libs/auth-client/README.md',
  'libs/settings-client/README.md',
] as const;

/** Returns the commands of the guide, up to the part for a browser. */
function guideCommands({ settings }: TestPlatform): string {
  const printed = guide(settings.ports, '/state');
  const [, commands = ''] = /another terminal:\n([\s\S]*?)\n *# single sign-on/.exec(printed) ?? [];
  return commands.replace(/^ {2}/gm, '');
}

const { PATH = '' } = process.env;
const missing = ['curl', 'openssl'].filter((command) => !hasCommand(command));
const { it: itWithCurl } = testsThatNeed(
  'the examples for a shell',
  missing.length === 0 ? null : `no ${missing.join(', ')}`,
);

describe('the examples of the documentation, run unchanged', () => {
  let platform: TestPlatform;
  let folder: ExampleFolder;
  const traffic = new ExampleTraffic();
  const cleanUps: (() => Promise<unknown>)[] = [];
  let variables: Variables;

  beforeAll(async () => {
    folder = await ExampleFolder.create();
    cleanUps.push(() => folder.remove());
    platform = await startPlatform();
    cleanUps.push(() => platform.stop());
    cleanUps.push(() => traffic.stop());
    const authUrl = await traffic.before(platform.url('auth'));
    variables = {
      PATH,
      AUTH_URL: authUrl,
      SETTINGS_URL: await traffic.before(platform.url('settings')),
      END_OF_EXAMPLE_URL: `${authUrl}${END_OF_EXAMPLE}`,
      ...tokenVariables(platform.settings),
    };
  }, START_TIMEOUT_MS);

  afterAll(async () => {
    for (const cleanUp of cleanUps.reverse()) await cleanUp();
  }, START_TIMEOUT_MS);

  beforeEach(() => void traffic.take());

  async function examplesOf(page: string, language: Example['language']): Promise<Example[]> {
    const examples = readExamples(await readFile(join(WORKSPACE, page), 'utf8'));
    return examples.filter((example) => example.language === language);
  }

  /** Checks that every body of a 200 response matches the pages. */
  function expectBodies(): void {
    for (const { method, path, status, body } of traffic.take())
      for (const [pattern, expected] of BODIES)
        if (status === 200 && pattern.test(`${method} ${path}`))
          expect({ path, body: JSON.parse(body) as unknown }).toEqual({ path, body: expected });
  }

  itWithCurl(
    `${CALLING}: curl`,
    async () => {
      const examples = await examplesOf(CALLING, 'sh');
      const ended = await folder.runShell('calling.sh', shellScript(examples), variables);
      expect(ended).toMatchObject({ exitCode: 0, stderr: '' });
      expect(traffic.callsByHeading(examples)).toEqual(CALLING_BY_SHELL);
      expect(ended.stdout).toContain(VECTOR_CODE);
      expectBodies();
    },
    RUN_TIMEOUT_MS,
  );

  it(
    `${CALLING}: TypeScript`,
    async () => {
      const examples = await examplesOf(CALLING, 'ts');
      const made =
        '{ carl, technician, token, renewed, exchanged, fromTrustedToken, caller, ivyMaySchedule, cookies: browserCookie.length }';
      const ended = await run('calling.ts', examples, made);
      expect(traffic.callsByHeading(examples, [JWKS])).toEqual(CALLING_BY_TYPESCRIPT);
      const jwt = expect.stringMatching(/^eyJ[\w-]+\.[\w-]+\.[\w-]+$/);
      const pair = { accessToken: jwt, refreshToken: jwt };
      expect(ended).toEqual({
        carl: pair,
        renewed: pair,
        exchanged: pair,
        fromTrustedToken: pair,
        technician: { accessToken: jwt, refreshToken: null },
        token: jwt,
        caller: expect.objectContaining({ subject: 'userid:9001', personas: 1, clientId: 'demo-backend' }),
        ivyMaySchedule: true,
        cookies: 1,
      });
      expectBodies();
    },
    RUN_TIMEOUT_MS,
  );

  it(
    AUTH_CLIENT,
    async () => {
      const examples = await examplesOf(AUTH_CLIENT, 'ts');
      const statuses = await run('auth-client.ts', examples, '[response.status, answer.status]');
      expect(statuses).toEqual([200, 200]);
      expect(traffic.callsByHeading(examples)).toEqual({
        'A token that is always good': ['POST /auth/token/trust 200, reason 0', 'GET /auth/me 200'],
        'Signing a request yourself': ['POST /auth/token/trust 200, reason 0'],
      });
      expectBodies();
    },
    RUN_TIMEOUT_MS,
  );

  it(
    SETTINGS_CLIENT,
    async () => {
      const examples = await examplesOf(SETTINGS_CLIENT, 'ts');
      expect(await run('settings-client.ts', examples, '{ currency, limit, setting, invoiceDay }')).toEqual({
        currency: 'EUR',
        limit: 100,
        invoiceDay: expect.objectContaining({ settingValue: 28, etag: expect.any(String) }),
        setting: {
          subsystemName: 'Billing',
          settingName: 'Currency',
          settingValue: 'EUR',
          etag: expect.stringMatching(/^".+"$/),
        },
      });
    },
    RUN_TIMEOUT_MS,
  );

  itWithCurl(
    'the commands that npm start prints',
    async () => {
      const ended = await folder.runShell('guide.sh', guideCommands(platform), { PATH });
      expect(ended).toMatchObject({ exitCode: 0, stderr: '' });
      const [put, value, schedule, instances] = ended.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown);
      expect(put).toMatchObject({ settingValue: 'EUR' });
      expect(value).toBe('EUR');
      expect(schedule).toMatchObject({ facilityId: 501, status: 'Active' });
      expect(instances).toMatchObject({ instances: expect.any(Array) });
    },
    RUN_TIMEOUT_MS,
  );

  it(
    'pass the type check',
    async () => {
      expect(await folder.typeCheck()).toEqual({ exitCode: 0, stdout: '', stderr: '' });
    },
    RUN_TIMEOUT_MS,
  );

  /**
   * Runs examples as one module.
   * @returns the value of `result` at the end
   */
  async function run(name: string, examples: readonly Example[], result: string): Promise<unknown> {
    const module = typeScriptModule(examples, `console.log(JSON.stringify(${result}));\n`);
    const ended = await folder.runModule(name, module, variables);
    expect(ended).toMatchObject({ exitCode: 0, stderr: '' });
    return JSON.parse(ended.stdout.trim().split('\n').at(-1) ?? '');
  }
});
