import { join } from 'node:path';
import { SERVICE_NAMES } from '#platform/programs.ts';
import { runProcess } from '@platform/testing';

const DIST = join(__dirname, '../../../dist');

/** Runs a deployable that cannot start, to its end. */
async function failToStart(entry: string, env: Record<string, string> = {}) {
  const running = await runProcess({ entry: join(DIST, entry), env });
  return { exitCode: await running.exited, output: running.output() };
}

describe('a deployable without its configuration', () => {
  it.each(SERVICE_NAMES)(
    '%s ends with a failure that names every variable and shows no value',
    async (name) => {
      const { exitCode, output } = await failToStart(`apps/${name}-service/main.js`, {
        DATABASE_URL: 'mysql://root:hunter2@127.0.0.1/db',
        ACCESS_TOKEN_HMAC_KEY: 'short-secret',
      });
      expect(exitCode).toBe(1);
      for (const variable of ['DATABASE_URL', 'TOKEN_ISSUER', 'ACCESS_TOKEN_HMAC_KEY', 'CURSOR_HMAC_KEY'])
        expect(output).toContain(variable);
      expect(output).not.toMatch(/hunter2|short-secret/);
    },
  );

  it.each(SERVICE_NAMES)('%s does not migrate, and says which variable is missing', async (name) => {
    const { exitCode, output } = await failToStart(`apps/${name}-service/migrate.js`);
    expect(exitCode).toBe(1);
    expect(output).toBe('invalid configuration:\n  DATABASE_URL: is required\n');
  });

  it.each(SERVICE_NAMES)('%s does not migrate a database that it cannot talk to', async (name) => {
    const { exitCode, output } = await failToStart(`apps/${name}-service/migrate.js`, {
      DATABASE_URL: 'mysql://root:hunter2@127.0.0.1/db',
      MIGRATION_DATABASE_URL: 'hunter2',
    });
    expect(exitCode).toBe(1);
    expect(output.split('\n')).toEqual([
      'invalid configuration:',
      '  DATABASE_URL: must be a postgres:// address',
      '  MIGRATION_DATABASE_URL: must be a postgres:// address',
      '',
    ]);
  });

  it('auth-service touches no schema when the address of one store is wrong', async () => {
    const { exitCode, output } = await failToStart('apps/auth-service/migrate.js', {
      DATABASE_URL: 'postgres://nobody@127.0.0.1:9/none',
      INTERNAL_LEGACY_DATABASE_URL: 'hunter2',
    });
    expect(exitCode).toBe(1);
    expect(output).toBe(
      'invalid configuration:\n  INTERNAL_LEGACY_DATABASE_URL: must be a postgres:// address\n',
    );
  });

  it('loads no development identities, and says what is missing', async () => {
    const { exitCode, output } = await failToStart('apps/auth-service/load-development-identities.js', {
      NODE_ENV: 'production',
      SECRET_ENCRYPTION_KEY: 'short-secret',
    });
    expect(exitCode).toBe(1);
    expect(output).toMatch(/^invalid configuration:\n( {2}\w+: .+\n)+$/);
    for (const variable of [
      'NODE_ENV',
      'DATABASE_URL',
      'SECRET_ENCRYPTION_KEY',
      'DEVELOPMENT_SERVICE_SECRET',
    ])
      expect(output).toContain(`  ${variable}: `);
    expect(output).not.toContain('short-secret');
  });

  it.each([
    ['customers', 'RABBITMQ_MAIN_URL'],
    ['scheduling', 'RABBITMQ_SCHEDULING_URL'],
    ['completion-receiver', 'RABBITMQ_MAIN_URL'],
    ['identity-provider', 'CLIENT_SECRET'],
  ])('neighbour %s ends with a failure that names %s and not its value', async (name, variable) => {
    const { exitCode, output } = await failToStart(`tools/neighbours/${name}.js`, { [variable]: 'hunter2' });
    expect(exitCode).toBe(1);
    expect(output).toContain(variable);
    expect(output).not.toContain('hunter2');
  });
});
