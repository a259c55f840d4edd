import { readExternalServers, secretFileName, withoutCredentials } from './external-servers.ts';

describe('readExternalServers', () => {
  it('treats an empty variable as unset', () => {
    const none = { databaseUrl: null, migrationUrl: null, rabbitmqUrl: null };
    expect(readExternalServers({ DATABASE_URL: '' })).toEqual(none);
  });

  it('refuses an address of another kind without repeating it', () => {
    const read = () => readExternalServers({ DATABASE_URL: 'mysql://u:top-secret@h/x' });
    expect(read).toThrow(/DATABASE_URL must look like postgres:/);
    expect(read).not.toThrow(/top-secret/);
  });
});

describe('a pooler and several hosts', () => {
  const DATABASE_URL = 'postgres://app:pw@pooler-0:6432,pooler-1:6432/platform';

  it('are accepted, together with a migration URL without the pooler', () => {
    const MIGRATION_DATABASE_URL = 'postgres://owner:pw@db-0:5432,db-1:5432/platform';
    const RABBITMQ_URL = 'amqp://u:p@rabbit-0:5672,rabbit-1:5672';
    expect(readExternalServers({ DATABASE_URL, MIGRATION_DATABASE_URL, RABBITMQ_URL })).toEqual({
      databaseUrl: DATABASE_URL,
      migrationUrl: MIGRATION_DATABASE_URL,
      rabbitmqUrl: RABBITMQ_URL,
    });
    expect(withoutCredentials(DATABASE_URL)).toBe('postgres://pooler-0:6432,pooler-1:6432/platform');
    expect(secretFileName(DATABASE_URL)).toMatch(/^secrets-[0-9a-f]{12}\.json$/);
  });

  it('are refused if a host is invalid, or if there is only a migration URL', () => {
    const wrong = { DATABASE_URL: 'postgres://app:pw@a:x,b:5432/platform' };
    expect(() => readExternalServers(wrong)).toThrow(/DATABASE_URL must look like/);
    const alone = { MIGRATION_DATABASE_URL: DATABASE_URL };
    expect(() => readExternalServers(alone)).toThrow(/goes with DATABASE_URL/);
  });
});

describe('secretFileName', () => {
  it('depends on server and database, not on the login', () => {
    const names = ['postgres://a:b@h:1/x', 'postgres://c:d@h:1/x', 'postgres://a:b@h:1/y'].map(
      secretFileName,
    );
    expect(names[0]).toBe(names[1]);
    expect(names[0]).not.toBe(names[2]);
  });

  it('is the private one when no server is named', () => {
    expect(secretFileName(null)).toBe('secrets.json');
  });
});

describe('withoutCredentials', () => {
  it('shows server and database only', () => {
    expect(withoutCredentials('postgres://user:secret@h:5432/name?password=x')).toBe(
      'postgres://h:5432/name',
    );
  });
});
