import { readTourSettings } from './addresses.ts';

describe('readTourSettings', () => {
  it('goes by the port table when nothing else is said', () => {
    expect(readTourSettings({})).toMatchObject({
      auth: 'http://127.0.0.1:3001',
      settings: 'http://127.0.0.1:3002',
      task: 'http://127.0.0.1:3003',
      receiver: 'http://127.0.0.1:3013',
    });
  });

  it('prefers a variable to the running platform, and that to the default; a last slash does not matter', () => {
    const settings = readTourSettings(
      { AUTH_URL: 'http://auth.test/' },
      { AUTH_URL: 'http://127.0.0.1:1', TASK_URL: 'http://127.0.0.1:2' },
    );
    expect(settings).toMatchObject({ auth: 'http://auth.test', task: 'http://127.0.0.1:2' });
  });
});
