import { join } from 'node:path';
import { serviceEnvironment } from '#platform/environments.ts';
import { SERVICE_NAMES, SERVICES, type Service } from '#platform/programs.ts';
import type { TestPlatform } from '#platform/test-platform.ts';
import { eventually, permitFaults, runProcess } from '@platform/testing';
import { createPlatform } from '../src/platform';

const DIST = join(__dirname, '../../../dist');

/** Runs a deployable that cannot start, and waits for its end. */
async function failToStart(entry: string, env: Record<string, string> = {}) {
  const running = await runProcess({ entry: join(DIST, entry), env });
  return { exitCode: await running.exited, output: running.output() };
}

interface LogLine {
  readonly level: string;
  readonly service: string;
  readonly msg: string;
  readonly problems?: Readonly<Record<string, readonly string[]>>;
}

const WRONG_ADDRESS = expect.stringContaining('must look like postgres://') as string;

/**
 * Parses every line that a program wrote.
 * @throws if a line is not JSON
 */
function linesOf(output: string): LogLine[] {
  return output
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as LogLine);
}

/** Returns the configuration problems in the only line that a program wrote. */
function problemsIn(output: string): object {
  const lines = linesOf(output);
  expect(lines).toEqual([expect.objectContaining({ level: 'fatal', msg: 'invalid configuration' })]);
  return lines[0]?.problems ?? {};
}

/** Permits fatal log lines, because deployables that cannot start write them. */
beforeEach(permitFaults);

describe('a deployable without its configuration', () => {
  it.each(SERVICE_NAMES)(
    '%s fails with an error that names every invalid variable and shows no value',
    async (name) => {
      const { exitCode, output } = await failToStart(`apps/${name}-service/main.js`, {
        DATABASE_URL: 'mysql://root:hunter2@127.0.0.1/db',
        ACCESS_TOKEN_HMAC_KEY: 'short-secret',
      });
      expect(exitCode).toBe(1);
      const expected = ['DATABASE_URL', 'TOKEN_ISSUER', 'ACCESS_TOKEN_HMAC_KEY', 'CURSOR_HMAC_KEY'];
      expect(Object.keys(problemsIn(output))).toEqual(expect.arrayContaining(expected));
      expect(output).not.toMatch(/hunter2|short-secret/);
    },
  );

  it.each(SERVICE_NAMES)('%s does not migrate, and names the missing variable', async (name) => {
    const { exitCode, output } = await failToStart(`apps/${name}-service/migrate.js`);
    expect(exitCode).toBe(1);
    expect(problemsIn(output)).toEqual({ DATABASE_URL: ['is required'] });
  });

  it.each(SERVICE_NAMES)('%s does not migrate with an invalid database address', async (name) => {
    const { exitCode, output } = await failToStart(`apps/${name}-service/migrate.js`, {
      DATABASE_URL: 'mysql://root:hunter2@127.0.0.1/db',
      MIGRATION_DATABASE_URL: 'hunter2',
    });
    expect(exitCode).toBe(1);
    expect(problemsIn(output)).toEqual({
      DATABASE_URL: [WRONG_ADDRESS],
      MIGRATION_DATABASE_URL: [WRONG_ADDRESS],
    });
  });

  it('auth-service migrates no schema if the address of one store is invalid', async () => {
    const { exitCode, output } = await failToStart('apps/auth-service/migrate.js', {
      DATABASE_URL: 'postgres://nobody@127.0.0.1:9/none',
      INTERNAL_LEGACY_DATABASE_URL: 'hunter2',
    });
    expect(exitCode).toBe(1);
    expect(problemsIn(output)).toEqual({ INTERNAL_LEGACY_DATABASE_URL: [WRONG_ADDRESS] });
  });

  it('loads no development identities, and names the invalid variables', async () => {
    const { exitCode, output } = await failToStart('apps/auth-service/load-development-identities.js', {
      NODE_ENV: 'production',
      SECRET_ENCRYPTION_KEY: 'short-secret',
    });
    expect(exitCode).toBe(1);
    expect(Object.keys(problemsIn(output)).sort()).toEqual([
      'DATABASE_URL',
      'DEVELOPMENT_SERVICE_SECRET',
      'NODE_ENV',
      'SECRET_ENCRYPTION_KEY',
    ]);
    expect(output).not.toContain('short-secret');
  });

  it.each([
    ['customers', 'RABBITMQ_MAIN_URL'],
    ['scheduling', 'RABBITMQ_SCHEDULING_URL'],
    ['completion-receiver', 'RABBITMQ_MAIN_URL'],
    ['identity-provider', 'CLIENT_SECRET'],
  ])('neighbour %s fails with an error that names %s and not its value', async (name, variable) => {
    const { exitCode, output } = await failToStart(`tools/neighbours/${name}.js`, { [variable]: 'hunter2' });
    expect(exitCode).toBe(1);
    expect(output).toContain(variable);
    expect(output).not.toContain('hunter2');
  });
});

describe('a deployable that cannot connect to its database', () => {
  let platform: TestPlatform;

  beforeAll(async () => {
    platform = await createPlatform();
  }, 60_000);

  afterAll(() => platform.stop());

  function environment(service: Service, change: (url: URL) => void): Record<string, string> {
    const [app, owner] = ['app', 'owner'].map((role) => {
      const url = new URL(platform.settings.databases[service.service][role as 'app' | 'owner']);
      change(url);
      return url.href;
    });
    const names = ['DATABASE_URL', 'MIGRATION_DATABASE_URL'] as const;
    return { ...serviceEnvironment(service, platform.settings), [names[0]]: app!, [names[1]]: owner! };
  }

  it.each(SERVICES)('$name warns while it waits for an unreachable database', async (service) => {
    const env = environment(service, (url) => (url.port = '9'));
    const running = await runProcess({ entry: join(DIST, '..', service.bundle), env });
    await eventually(() =>
      expect(linesOf(running.output())).toContainEqual(
        expect.objectContaining({
          level: 'warn',
          msg: expect.stringMatching(/not reachable yet: .*ECONNREFUSED/),
        }),
      ),
    );
    await running.stop('SIGKILL');
  });

  it.each(
    SERVICES.flatMap(({ name, bundle, migrate }) => [
      { name, program: bundle },
      { name, program: migrate },
    ]),
  )('$program reports a wrong password in its last line, and writes only JSON', async ({ name, program }) => {
    const service = SERVICES.find((each) => each.name === name)!;
    const env = environment(service, (url) => (url.password = 'hunter2-wrong'));
    const { exitCode, output } = await failToStart(join('..', program), env);
    expect(exitCode).toBe(1);
    expect(linesOf(output).at(-1)).toMatchObject({
      level: 'fatal',
      msg: expect.stringMatching(/password/),
    });
    expect(output).not.toContain('hunter2');
  });
});
