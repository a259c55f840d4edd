import fc from 'fast-check';
import { JsonSyntaxError } from './json-scanner';
import {
  InvalidSettingValueError,
  MAX_VALUE_BYTES,
  parseKeepingValues,
  settingValueOf,
} from './setting-value';

const read = (body: string): string => settingValueOf(Buffer.from(body, 'utf8'));

describe('settingValueOf', () => {
  it.each([
    '1.0',
    '-0',
    '1E400',
    '12345678901234567890',
    '"\\u0000"',
    '"\\ud800"',
    '"ü😀\u2028"',
    'true',
    '[ 1 ,\n2 ]',
    '{"b":1,"a":2,"b":3}',
    '{"__proto__":{"x":1}}',
    '[null]',
    '{"settingValue":{"settingValue":null}}',
  ])('keeps %s as it is', (value) => {
    expect(read(`{"settingValue":${value}}`)).toBe(value);
    expect(read(` {\t"settingValue" :\r\n${value} } \n`)).toBe(value);
    expect(read(`{"subsystemName":"s","settingValue":${value},"settingName":null}`)).toBe(value);
  });

  it('finds any value among any other members', () => {
    const other = fc.string().filter((name) => name !== 'settingValue');
    const members = fc.array(fc.tuple(other, fc.json()), { maxLength: 4 });
    fc.assert(
      fc.property(
        members,
        fc.json().filter((text) => text !== 'null'),
        members,
        (before, value, after) => {
          const all = [...before, ['settingValue', value] as const, ...after];
          const body = `{${all.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(',')}}`;
          expect(read(body)).toBe(value);
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it('recognises the member by its decoded name, with its exact case', () => {
    expect(read('{"setting\\u0056alue":1}')).toBe('1');
    expect(() => read('{"SettingValue":1}')).toThrow('settingValue is required');
  });

  it.each([
    ['no body', '', JsonSyntaxError],
    ['an array', '[1]', InvalidSettingValueError],
    ['a string', '"settingValue"', InvalidSettingValueError],
    ['no such member', '{}', InvalidSettingValueError],
    ['null', '{"settingValue": null }', InvalidSettingValueError],
    ['the member twice', '{"settingValue":1,"settingValue":1}', InvalidSettingValueError],
    ['the member twice, once escaped', '{"settingValue":1,"\\u0073ettingValue":1}', InvalidSettingValueError],
    ['a byte order mark', '\ufeff{"settingValue":1}', JsonSyntaxError],
    ['something after the object', '{"settingValue":1}}', JsonSyntaxError],
    ['a malformed other member', '{"settingValue":1,"a":tru}', JsonSyntaxError],
    ['a trailing comma', '{"settingValue":1,}', JsonSyntaxError],
  ])('refuses %s', (_case, body, error) => {
    expect(() => read(body)).toThrow(error);
  });

  it.each([
    ['a byte that starts nothing', [0xff]],
    ['an overlong encoding', [0xc0, 0xaf]],
    ['an encoded surrogate', [0xed, 0xa0, 0x80]],
    ['a truncated sequence', [0xe2, 0x82]],
    ['a code point past U+10FFFF', [0xf4, 0x90, 0x80, 0x80]],
  ])('refuses %s as not UTF-8', (_case, bytes) => {
    const body = Buffer.concat([Buffer.from('{"settingValue":"'), Buffer.from(bytes), Buffer.from('"}')]);
    expect(() => settingValueOf(body)).toThrow('not valid UTF-8');
  });

  it('accepts a value of the maximum size, counted in bytes, and none larger', () => {
    const ofBytes = (bytes: number): string => `"${'é'.repeat((bytes - 2) / 2)}"`;
    expect(read(`{"settingValue":${ofBytes(MAX_VALUE_BYTES)}}`)).toHaveLength(MAX_VALUE_BYTES / 2 + 1);
    expect(() => read(`{"settingValue":${ofBytes(MAX_VALUE_BYTES).replace('é', 'éx')}}`)).toThrow(
      'must not exceed',
    );
  });

  it('accepts a value of the maximum depth and none deeper', () => {
    const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);
    expect(read(`{"settingValue":${nested(512)}}`)).toBe(nested(512));
    expect(() => read(`{"settingValue":${nested(513)}}`)).toThrow('deeper than 512');
  });

  it('never repeats the value in a message', () => {
    expect(() => read('{"settingValue":"s3cret')).toThrow(/^(?!.*s3cret)/);
  });
});

describe('parseKeepingValues', () => {
  const parse = (body: string): unknown => parseKeepingValues(Buffer.from(body, 'utf8'));
  const members = Array.from({ length: 60_000 }, (_none, index) => `"m${String(index)}":0`).join(',');
  const entries = '{},'.repeat(170_000);

  it.each([
    ['many members', `{${members}}`],
    ['many members in an entry', `{"settings":[{${members}}]}`],
    ['many members in a write', `{"writes":[{${members}}]}`],
    ['many members in a member', `{"at":{${members}}}`],
    ['a list of many', `{"settings":[${entries}{}]}`],
    ['many writes', `{"writes":[${entries}{}]}`],
    ['a list in place of an object', `[${entries}{}]`],
    ['a list where a text belongs', `{"at":[${entries}{}]}`],
  ])('refuses %s before it parses them', (_what, body) => {
    const startedMs = performance.now();
    expect(() => parse(body)).toThrow(InvalidSettingValueError);
    // Parsing these bodies takes 20 to 60 ms; finding the end of a member takes about 5 ms.
    expect(performance.now() - startedMs).toBeLessThan(1_000);
  });

  it('refuses many members beside a value of PUT, too', () => {
    expect(() => read(`{${members},"settingValue":1}`)).toThrow(InvalidSettingValueError);
  });

  it('keeps values of any size and number of members', () => {
    const value = `{${members.split(',').slice(0, 10_000).join(',')}}`;
    expect(parse(`{"writes":[{"subsystemName":"s","settingName":"n","settingValue":${value}}]}`)).toEqual({
      writes: [{ subsystemName: 's', settingName: 'n', settingValue: value }],
    });
  });

  it('reads 200 names of the maximum length', () => {
    const name = '\\ud83d\\ude00'.repeat(200);
    const settings = Array.from({ length: 100 }, () => `{"subsystemName":"${name}","settingName":"${name}"}`);
    expect((parse(`{"settings":[${settings.join(',')}]}`) as { settings: object[] }).settings).toHaveLength(
      100,
    );
  });

  it('keeps the text of a value in a write only, and parses everything else', () => {
    const entry = '{"settingValue": 1.0 ,"settingName":"\\u0041"}';
    expect(parse(`{"writes":[${entry},7],"settings":[${entry}],"at":null}`)).toEqual({
      writes: [{ settingValue: '1.0', settingName: 'A' }, 7],
      settings: [{ settingValue: 1, settingName: 'A' }],
      at: null,
    });
    expect(parse('{"writes":{"settingValue":1.0},"settings":"x","toString":[1.0]}')).toEqual({
      writes: { settingValue: 1 },
      settings: 'x',
      toString: [1],
    });
    expect(parse(' { "writes" : [ ] , "settings" : [ { } , { } ] } ')).toEqual({
      writes: [],
      settings: [{}, {}],
    });
    expect(parse('7')).toBe(7);
  });

  it.each([
    ['{"at":1,"at":1}'],
    ['{"writes":[],"\\u0077rites":[]}'],
    ['{"writes":[{"settingValue":1,"settingValue":1}]}'],
    ['{"settings":[{"a":1,"a":1}]}'],
  ])('refuses a member that is given twice: %s', (body) => {
    expect(() => parse(body)).toThrow('no member may be given twice');
  });

  it('accepts 20 members, 1,000 entries and 8,192 characters, and not one more', () => {
    const object = (count: number) =>
      `{${Array.from({ length: count }, (_none, index) => `"m${String(index)}":0`).join(',')}}`;
    const list = (count: number) => `{"settings":[${Array.from({ length: count }, () => '{}').join(',')}]}`;
    const text = (length: number) => `{"at":"${'x'.repeat(length - 2)}"}`;
    expect(Object.keys(parse(object(20)) as object)).toHaveLength(20);
    expect(() => parse(object(21))).toThrow('too many members');
    expect((parse(list(1_000)) as { settings: object[] }).settings).toHaveLength(1_000);
    expect(() => parse(list(1_001))).toThrow('1,000 entries at most');
    expect((parse(text(8_192)) as { at: string }).at).toHaveLength(8_190);
    expect(() => parse(text(8_193))).toThrow('a member is too long');
  });

  it.each(['', '{"at":1}}', '{"at":1 "b":2}', '{"settings":[{} {}]}', '{"settings":[{}}', '{"at" 1}'])(
    'refuses what is not JSON: %s',
    (body) => {
      expect(() => parse(body)).toThrow(JsonSyntaxError);
    },
  );
});
