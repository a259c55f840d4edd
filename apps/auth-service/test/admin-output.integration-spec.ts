import { execFile } from 'node:child_process';
import { createTestDatabase } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import { SECRET_KEY, migrateWithIdentities } from './auth-fixture';
import { ADMINISTRATION, ensureBuilt } from './replica-processes';

const CREATE = 'applications create unseen --personas Customer --flows trust';
const ROTATE = 'applications rotate-secret demo-backend --previous-expires-in 1h';

describe('administration whose output cannot be written', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    await ensureBuilt();
    database = await createTestDatabase({ migrate: migrateWithIdentities });
  }, 120_000);
  afterAll(() => database.drop());

  const secrets = () =>
    database.query('SELECT application_key, version, expires_at FROM auth.application_secret ORDER BY 1, 2');
  const inShell = (script: string): Promise<{ stdout: string; stderr: string }> =>
    new Promise((resolve) => {
      const env = {
        ...process.env,
        NODE: process.execPath,
        ADMIN: ADMINISTRATION,
        MIGRATION_DATABASE_URL: database.ownerUrl,
        SECRET_ENCRYPTION_KEY: SECRET_KEY.toString('base64url'),
      };
      execFile('bash', ['-c', script], { env }, (_error, stdout, stderr) => resolve({ stdout, stderr }));
    });

  it.each([
    ['a closed pipe', CREATE, `| head -c 0; echo "$\{PIPESTATUS[0]}"`, 'EPIPE'],
    ['a closed pipe', ROTATE, `| head -c 0; echo "$\{PIPESTATUS[0]}"`, 'EPIPE'],
    ['a full disk', CREATE, '> /dev/full; echo $?', 'ENOSPC'],
    ['a full disk', ROTATE, '> /dev/full; echo $?', 'ENOSPC'],
    ['a full disk', 'applications list', '> /dev/full; echo $?', 'ENOSPC'],
    ['a full disk', '--help', '> /dev/full; echo $?', 'ENOSPC'],
  ])(
    'to %s changes nothing and prints one line of error: %s',
    async (_where, command, destination, reason) => {
      const before = await secrets();
      const { stdout, stderr } = await inShell(`"$NODE" "$ADMIN" ${command} ${destination}`);
      expect([stdout, stderr]).toEqual(['1\n', `✘ the output cannot be written (${reason})\n`]);
      expect(await secrets()).toEqual(before);
    },
    60_000,
  );
});
