import { randomBytes } from 'node:crypto';
import { permitFaults, runProcess } from '@platform/testing';
import { PLATFORM_SECRET, SECRET_KEY } from './auth-fixture';
import { ADMINISTRATION, DEVELOPMENT_IDENTITIES, MIGRATION, ensureBuilt } from './replica-processes';

/** A wrong password, which the output must not contain. */
const WRONG_PASSWORD = `wrong-${randomBytes(8).toString('hex')}`;

describe('commands that cannot connect to their database', () => {
  beforeAll(ensureBuilt);
  // The commands log a line at level fatal.
  beforeEach(permitFaults);

  function addressWith(change: (url: URL) => void): string {
    const url = new URL(process.env.TEST_DATABASE_URL!);
    change(url);
    return url.toString();
  }
  const wrongPassword = (): string =>
    addressWith((url) => {
      url.username = `nobody_${randomBytes(4).toString('hex')}`;
      url.password = WRONG_PASSWORD;
    });
  const noSuchDatabase = (): string => addressWith((url) => (url.pathname = '/there_is_none'));
  const nobodyListens = (): string => `postgres://user:${WRONG_PASSWORD}@localhost:9/auth`;

  async function run(
    entry: string,
    args: string[],
    url: string,
  ): Promise<{ exitCode: number | null; output: string }> {
    const env = {
      DATABASE_URL: url,
      SECRET_ENCRYPTION_KEY: SECRET_KEY.toString('base64url'),
      DEVELOPMENT_SERVICE_SECRET: PLATFORM_SECRET,
    };
    const running = await runProcess({ entry, args, env });
    return { exitCode: await running.exited, output: running.output() };
  }

  it.each<[string, string, string[], () => string, RegExp]>([
    ['migrate', MIGRATION, [], wrongPassword, /^the database refuses the user/],
    ['migrate', MIGRATION, [], noSuchDatabase, /^there is no such database$/],
    [
      'load-development-identities',
      DEVELOPMENT_IDENTITIES,
      [],
      wrongPassword,
      /^the database refuses the user/,
    ],
    [
      'load-development-identities',
      DEVELOPMENT_IDENTITIES,
      [],
      nobodyListens,
      /^the database cannot be reached: .*ECONNREFUSED/,
    ],
    ['admin', ADMINISTRATION, ['keys', 'list'], wrongPassword, /^✘ the database refuses the user/],
    [
      'admin',
      ADMINISTRATION,
      ['keys', 'list'],
      nobodyListens,
      /^✘ the database cannot be reached: .*ECONNREFUSED/,
    ],
  ])('%s (%s) reports the reason in one line and exits with code 1', async (_, entry, args, url, reason) => {
    const { exitCode, output } = await run(entry, args, url());
    const lines = output.trimEnd().split('\n');
    expect({ exitCode, lines: lines.length }).toEqual({ exitCode: 1, lines: 1 });
    const [line = ''] = lines;
    // Administration prints text; the other programs log JSON.
    expect(line.startsWith('{') ? (JSON.parse(line) as { msg: string }).msg : line).toMatch(reason);
    expect(output).not.toContain(WRONG_PASSWORD);
  });
});
