import type { Random } from '#platform/random.ts';

/** Text that has broken programs. As a JavaScript string: lone surrogates included. */
const HOSTILE_TEXTS: readonly string[] = [
  '',
  ' ',
  '\0',
  'a\0b',
  '\u0001\u001f\u007f\u0085',
  '\ud800',
  'x\udfff\ud800x',
  '\ufeffbom',
  '\u202egnp.exe',
  'İstanbul ıI ß ẞ ﬁ',
  'e\u0301 \u00e9 \u212b',
  '👩‍👩‍👧‍👦'.repeat(3),
  "' OR '1'='1' --",
  "'; DROP TABLE settings.platform_setting; --",
  '1); SELECT pg_sleep(30); --',
  "$$; COPY (SELECT '') TO PROGRAM 'id'; $$",
  '%_\\%',
  '\\',
  '"',
  '{{7*7}} ${7*7} #{7*7} <%= 7*7 %>',
  '<script>alert(1)</script>',
  '../../../../etc/passwd',
  '..\\..\\windows\\win.ini',
  '/etc/passwd\0.json',
  'file:///etc/passwd',
  'http://169.254.169.254/latest/meta-data/',
  '$(id) `id` | id ; id',
  '%s%n%x',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'null',
  'undefined',
  'NaN',
  '-1',
  '0',
  '-0',
  '1e309',
  '0x10',
  '1.5',
  '2147483648',
  '9007199254740993',
  '9223372036854775808',
  '99999999999999999999999999',
  '00000000-0000-0000-0000-000000000000',
  '{00000000-0000-0000-0000-000000000000}',
  'SecurityEditor~~GroupName~~',
  'SecurityEditor~~GroupName~~Dispatch~~x',
  'SecurityEditor~~AccessPointName~~\u0000',
  '~~~~',
  '(a+)+$',
  'a'.repeat(300),
  'é'.repeat(5_000),
];

/** Cron expressions at the edge of what five fields mean, and beyond it. */
export const CRON_TEXTS: readonly string[] = [
  '0 9 * * 1',
  '*/15 * * * *',
  '0 0 29 2 *',
  '0 0 31 4 *',
  '0 0 30 2 *',
  '59 23 31 12 6',
  '0 0 1 1 0',
  '0 0 * * 7',
  '0 0 13 * 5',
  '0-59/59 0-23/23 1-31/30 1-12/11 0-6/6',
  '5-1 * * * *',
  '*/0 * * * *',
  '*/60 * * * *',
  '*/99999999999999999999 * * * *',
  '60 * * * *',
  '-1 * * * *',
  '0 24 * * *',
  '0 0 0 * *',
  '0 0 32 * *',
  '0 0 * 13 *',
  '0 0 * * 8',
  '0 0 L * *',
  '0 0 * * 5L',
  '0 0 15W * *',
  '0 0 * * 1#5',
  '0 0 ? * MON',
  '0 0 * JAN-DEC SUN-SAT',
  '@daily',
  '@reboot',
  '* * * *',
  '0 0 0 * * *',
  '* * * * * *',
  '0\t9\t*\t*\t1',
  ' 0 9 * * 1 ',
  '0  9 * * 1',
  '0 9 * * 1\n',
  'H 9 * * 1',
  '1,2,3,4,5,6,7,8,9,10,11,12,13,14,15 * * * *',
  `${'1,'.repeat(2_000)}1 * * * *`,
  '２ 9 * * 1',
  '1.5 9 * * 1',
  '0x1 9 * * 1',
  '',
];

/** Time zones that are, are no longer, and never were. */
export const TIME_ZONES: readonly string[] = [
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'Asia/Kolkata',
  'Australia/Lord_Howe',
  'Pacific/Apia',
  'Pacific/Kiritimati',
  'Africa/Monrovia',
  'America/Scoresbysund',
  'Antarctica/Troll',
  'Etc/GMT+12',
  'GMT',
  'EST5EDT',
  'CET',
  '+01:00',
  '+14:01',
  'UTC+1',
  'europe/berlin',
  'Mars/Olympus',
  'Europe/Berlin\0',
  '../../etc/localtime',
  ':/etc/localtime',
  '',
];

/** Instants and dates at the edge. */
export const INSTANTS: readonly string[] = [
  '2026-03-09T00:00:00Z',
  '2026-03-09',
  '2024-02-29T23:59:59.999999999Z',
  '2023-02-29T00:00:00Z',
  '2026-03-29T02:30:00+01:00',
  '2016-12-31T23:59:60Z',
  '0000-01-01T00:00:00Z',
  '0001-01-01T00:00:00Z',
  '9999-12-31T23:59:59.999Z',
  '+275760-09-13T00:00:00.000Z',
  '+275760-09-13T00:00:00.001Z',
  '-271821-04-20T00:00:00Z',
  '2026-01-01T24:00:00Z',
  '2026-01-01T00:00:00+23:59',
  '2026-01-01T00:00:00-99:99',
  '2026-01-01T00:00:00',
  '2026-1-1',
  '1767225600',
  'infinity',
  '-infinity',
  'now',
  'epoch',
  'Thu, 01 Jan 1970 00:00:00 GMT',
];

export function hostileText(random: Random): string {
  if (random.chance(0.15))
    return String.fromCharCode(
      ...Array.from({ length: random.integer(1, 40) }, () => random.integer(0, 0xffff)),
    );
  if (random.chance(0.1))
    return random.pick([CRON_TEXTS, TIME_ZONES, INSTANTS].map((texts) => random.pick(texts)));
  return random.pick(HOSTILE_TEXTS);
}

/** Percent-encodes what may not stand in a target; lone surrogates, which have no UTF-8, as the three bytes that careless encoders make. */
export function percentEncode(text: string): string {
  return text.replace(/[^\w.~-]/gu, (character) =>
    /[\ud800-\udfff]/.test(character) && character.length === 1
      ? surrogateBytes(character.charCodeAt(0))
      : encodeURIComponent(character),
  );
}

function surrogateBytes(code: number): string {
  const bytes = [0xe0 | (code >> 12), 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f)];
  return bytes.map((byte) => `%${byte.toString(16)}`).join('');
}
