import { readExternalServers, secretFileName, withoutCredentials } from './external-servers.ts';

describe('readExternalServers', () => {
  it('takes an empty variable for none', () => {
    expect(readExternalServers({ DATABASE_URL: '' })).toEqual({ databaseUrl: null, rabbitmqUrl: null });
  });

  it('refuses an address of another kind without repeating it', () => {
    const read = () => readExternalServers({ DATABASE_URL: 'mysql://u:top-secret@h/x' });
    expect(read).toThrow(/DATABASE_URL must look like postgres:/);
    expect(read).not.toThrow(/top-secret/);
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
