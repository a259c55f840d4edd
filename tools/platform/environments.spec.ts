import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { saveServiceEnvironment } from '#platform/state-folder.ts';
import { signTrustRequest } from './callers.ts';
import { readAdministration } from './environments.ts';

const SECRET = 'kP3v9QmX7cT1wZ5yB8nR2sL6dF4hJ0gA-_uEiOaYtCs';

describe('signTrustRequest', () => {
  it.each([
    [
      {
        requestTimestampUtc: '2026-09-24T10:15:30.123Z',
        applicationKey: 'billing-api',
        persona: 4,
        userName: 'tech.4711',
        serviceProviderID: 815,
        name: 'Jörg Müller',
        userAccountID: null,
        personID: null,
      },
      'z/1wgDYJIFs+qhevH6rV/uJS7zDRHpL2+8zoye6ZBeg=',
    ],
    [
      {
        requestTimestampUtc: '2026-09-24T10:15:30Z',
        applicationKey: 'billing-api',
        persona: 1,
        userName: 'jdoe',
      },
      'ibkPoC6DH/x1sRnAsGzRLZ6g75BZCqjiBwdTdqtHhG4=',
    ],
  ])('agrees with the published example %#', (fields, code) => {
    expect(signTrustRequest(fields, SECRET)).toBe(code);
  });
});

describe('what administering a service takes', () => {
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
    'is told from an environment that its owner alone can read, and nothing else of it: %s',
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
