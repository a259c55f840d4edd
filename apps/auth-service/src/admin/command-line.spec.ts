import { administer, administrationProgram } from './administration';

/** Runs a command line with an empty environment, and returns its output and exit code. */
async function say(line: string): Promise<{ exitCode: number; out: string; err: string }> {
  const said = { out: '', err: '' };
  const output = {
    out: (text: string) => void (said.out += text),
    err: (text: string) => void (said.err += text),
  };
  const exitCode = await administer(line.split(' ').filter(Boolean), output, {});
  return { exitCode, ...said };
}

/** Whether parsing the command line gets as far as running its command. */
async function runs(line: string): Promise<boolean> {
  let isRun = false;
  const program = administrationProgram({ out: () => undefined }, () => {
    isRun = true;
    return Promise.resolve();
  });
  await program.parseAsync(line.split(' '), { from: 'user' });
  return isRun;
}

const ALL = administrationProgram({ out: () => undefined }, () => Promise.resolve()).commands.flatMap(
  (group) => group.commands.map((command) => `${group.name()} ${command.name()}`),
);

describe('the administration command line', () => {
  it('has the commands of every group', () => {
    expect(ALL).toEqual([
      'applications list',
      'applications create',
      'applications update',
      'applications rotate-secret',
      'applications expire-secret',
      'applications discard-secret',
      'applications set-return-addresses',
      'applications disable',
      'applications enable',
      'keys list',
      'keys generate',
      'keys activate',
      'keys retire',
      'keys remove',
      'revocations list',
      'revocations set',
      'sessions list',
      'sessions end',
      'secrets re-encrypt',
      'external-identities list',
      'external-identities add',
      'external-identities remove',
      'passwords import',
      'users explain',
    ]);
  });

  it.each(['--help', '-h', 'help'])('explains itself: %s', async (line) => {
    const { exitCode, out } = await say(line);
    expect(exitCode).toBe(0);
    for (const command of ALL) expect(out).toContain(command);
  });

  it.each(ALL)('explains %s and each of its options', async (name) => {
    const { exitCode, out } = await say(`${name} --help`);
    expect(exitCode).toBe(0);
    expect(out).toContain(`Usage: admin ${name}`);
    expect(out).toContain('--json');
  });

  it('explains a group of commands', async () => {
    const { exitCode, out } = await say('keys --help');
    expect([exitCode, out]).toEqual([0, expect.stringContaining('activate [options] <kid>')]);
  });

  it.each([
    ['', 'name a command: one of applications, keys, revocations'],
    ['key list', "unknown command 'key'"],
    ['keys', 'name a command of keys'],
    ['keys burn', "unknown command 'burn'"],
    ['keys activate', "missing required argument 'kid'"],
    ['keys activate a b', "too many arguments for 'activate'"],
    ['keys list extra', "too many arguments for 'list'"],
    ['keys list --verbose', "unknown option '--verbose'"],
    ['keys generate --algorithm', 'argument missing'],
    ['keys generate --algorithm HS256', '--algorithm must be ES256 or RS256'],
    ['applications create --personas all --flows all', "missing required argument 'application-key'"],
    ['applications create billing', "required option '--personas <names>' not specified"],
    ['applications create billing --personas all', "required option '--flows <names>' not specified"],
    ['applications create a/b --personas all --flows all', 'an application key holds'],
    ['applications create billing --personas Admin --flows all', 'there is no persona "Admin"'],
    ['applications create billing --personas None --flows all', 'there is no persona "None"'],
    ['applications create billing --personas all --flows sso', 'there is no flow "sso"'],
    ['applications rotate-secret billing --previous-expires-in soon', '"soon" is no duration'],
    ['applications expire-secret billing first', 'must be a whole number'],
    ['applications expire-secret billing 1 --in 400d', '"400d" is no duration of at most 366 days'],
    ['revocations set everybody 7', "'everybody' is invalid for argument 'domain'"],
    ['revocations set svc-personid 007', '"007" cannot be an identifier of svc-personid'],
    ['revocations list --since yesterday', '"yesterday" is no date'],
    [
      'revocations list --limit 0',
      "option '--limit <number>' argument '0' is invalid. it must be a whole number from 1",
    ],
  ])('refuses "%s" with the reason', async (line, message) => {
    const { exitCode, out, err } = await say(line);
    expect({ exitCode, out, err }).toEqual({ exitCode: 2, out: '', err: expect.stringContaining(message) });
    expect(err).toMatch(/^✘ [^\n]+--help$/);
  });

  it.each([
    'keys generate --algorithm rs256 --json',
    'applications create billing.api --personas customer,OWNER --flows trust,bearer --allow-refresh',
    'applications rotate-secret billing --previous-expires-in 24h',
    'revocations set token 0a1b --by ops',
  ])('accepts "%s"', async (line) => {
    expect(await runs(line)).toBe(true);
  });

  it('exits with 2 and one line, without connecting, if the command line is wrong', async () => {
    const errors: string[] = [];
    const output = { out: () => undefined, err: (text: string) => errors.push(text) };
    expect(await administer(['keys', 'burn'], output, {})).toBe(2);
    expect(await administer(['keys', 'burn', '--json'], output, {})).toBe(2);
    expect(errors[0]).toMatch(/^✘ unknown command 'burn'/);
    expect(JSON.parse(errors[1]!)).toEqual({ error: expect.stringContaining('burn') });
  });

  it('exits with 1 and the name of the variable, without its value, if the environment is wrong', async () => {
    const errors: string[] = [];
    const output = { out: () => undefined, err: (text: string) => errors.push(text) };
    expect(await administer(['keys', 'list'], output, {})).toBe(1);
    expect(await administer(['keys', 'list'], output, { DATABASE_URL: 'mysql://root:hunter2@db' })).toBe(1);
    expect(errors[0]).toContain('MIGRATION_DATABASE_URL');
    expect(errors[1]).toContain('DATABASE_URL');
    expect(errors.join()).not.toContain('hunter2');
  });
});
