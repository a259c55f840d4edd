import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { saveServiceEnvironment } from '#platform/state-folder.ts';
import { readAdministration } from './environments.ts';

describe('readAdministration', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'administration-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it.each([
    ['auth', { DATABASE_URL: 'app', MIGRATION_DATABASE_URL: 'owner', SECRET_ENCRYPTION_KEY: 'key' }],
    ['settings', { DATABASE_URL: 'app' }],
    ['task', { DATABASE_URL: 'app', RABBITMQ_MAIN_URL: 'main', RABBITMQ_SCHEDULING_URL: 'scheduling' }],
  ] as const)(
    'reads only what administration needs, from a file that only its owner can read: %s',
    (service, needed) => {
      saveServiceEnvironment(folder, `${service}-service`, { ...needed, CURSOR_HMAC_KEY: 'other' });
      expect(readAdministration(folder, service)).toEqual(needed);
      expect(statSync(join(folder, `${service}-service-environment.json`)).mode & 0o777).toBe(0o600);
    },
  );

  it('is empty before the first start', () => {
    expect(readAdministration(folder, 'auth')).toEqual({});
  });
});
