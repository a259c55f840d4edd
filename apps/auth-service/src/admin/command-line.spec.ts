import { administer, COMMAND_GROUPS } from './administration';
import { UsageError } from './command';
import { parseCommandLine } from './command-line';

const parse = (line: string): unknown => parseCommandLine(line.split(' ').filter(Boolean), COMMAND_GROUPS);
const ALL = COMMAND_GROUPS.flatMap((group) => group.commands.map(({ name }) => `${group.name} ${name}`));

describe('the administration command line', () => {
  it('has the commands of every subject', () => {
    expect(ALL).toEqual([
      'applications list',
      'applications create',
      'applications rotate-secret',
      'applications expire-secret',
      'applications disable',
      'applications enable',
      'keys list',
      'keys generate',
      'keys activate',
      'keys retire',
      'keys remove',
      'revocations list',
      'revocations set',
    ]);
  });

  it.each(['--help', '-h', 'help'])('explains itself: %s', (line) => {
    const { text } = parse(line) as { text: string };
    for (const command of ALL) expect(text).toContain(command);
  });

  it.each(ALL)('explains %s and each of its options', (name) => {
    const { kind, text } = parse(`${name} --help`) as { kind: string; text: string };
    expect(kind).toBe('help');
    expect(text).toContain(`Usage: ${name}`);
    expect(text).toContain('--json');
  });

  it('explains a subject', () => {
    expect(parse('keys --help')).toMatchObject({
      kind: 'help',
      text: expect.stringContaining('keys activate <kid>'),
    });
  });

  it.each([
    ['', 'name a command: one of applications, keys, revocations'],
    ['key list', 'there is no command "key"'],
    ['keys', 'name a command of keys'],
    ['keys burn', 'there is no command of keys "burn"'],
    ['keys activate', 'keys activate takes <kid>'],
    ['keys activate a b', 'keys activate takes <kid>'],
    ['keys list extra', 'keys list takes no arguments'],
    ['keys list --verbose', "Unknown option '--verbose'"],
    ['keys generate --algorithm', 'argument missing'],
    ['keys generate --algorithm HS256', '--algorithm must be ES256 or RS256'],
    ['applications create', 'takes <application-key>'],
    ['applications create billing', '--personas is required'],
    ['applications create billing --personas all', '--flows is required'],
    ['applications create a/b --personas all --flows all', 'an application key holds'],
    ['applications create billing --personas Admin --flows all', 'there is no persona "Admin"'],
    ['applications create billing --personas None --flows all', 'there is no persona "None"'],
    ['applications create billing --personas all --flows sso', 'there is no flow "sso"'],
    ['applications rotate-secret billing --previous-expires-in soon', '"soon" is no duration'],
    ['applications expire-secret billing first', '<version> must be a whole number'],
    ['applications expire-secret billing 1 --in 400d', '"400d" is no duration of at most 366 days'],
    ['revocations set everybody 7', 'there is no domain "everybody"'],
    ['revocations set svc-personid 007', '"007" cannot be an identifier of svc-personid'],
    ['revocations list --since yesterday', '"yesterday" is no date'],
    ['revocations list --limit 0', '--limit must be a whole number from 1'],
  ])('refuses "%s" with what is wrong', (line, message) => {
    expect(() => parse(line)).toThrow(UsageError);
    expect(() => parse(line)).toThrow(message);
  });

  it.each([
    'keys generate --algorithm rs256 --json',
    'applications create billing.api --personas customer,OWNER --flows trust,bearer --allow-refresh',
    'applications rotate-secret billing --previous-expires-in 24h',
    'revocations set token 0a1b --by ops',
  ])('accepts "%s"', (line) => {
    expect(parse(line)).toMatchObject({ kind: 'run', isJson: line.endsWith('--json') });
  });

  it('ends with 2 and one line, without connecting, when the command line is wrong', async () => {
    const errors: string[] = [];
    const output = { out: () => undefined, err: (text: string) => errors.push(text) };
    expect(await administer(['keys', 'burn'], output, {})).toBe(2);
    expect(await administer(['keys', 'burn', '--json'], output, {})).toBe(2);
    expect(errors[0]).toMatch(/^✘ there is no command of keys "burn"/);
    expect(JSON.parse(errors[1]!)).toEqual({ error: expect.stringContaining('burn') });
  });

  it('ends with 1 and names the variable when the environment is wrong, without its value', async () => {
    const errors: string[] = [];
    const output = { out: () => undefined, err: (text: string) => errors.push(text) };
    expect(await administer(['keys', 'list'], output, {})).toBe(1);
    expect(await administer(['keys', 'list'], output, { DATABASE_URL: 'mysql://root:hunter2@db' })).toBe(1);
    expect(errors[0]).toContain('MIGRATION_DATABASE_URL');
    expect(errors[1]).toContain('DATABASE_URL');
    expect(errors.join()).not.toContain('hunter2');
  });
});
