import { MAX_BODY_BYTES, readBody } from './body-limits';

const read = (body: string | Buffer) => readBody(Buffer.from(body));
const nested = (depth: number, [open, close]: readonly [string, string]) =>
  `${open.repeat(depth)}1${close.repeat(depth)}`;

describe('readBody', () => {
  it('returns the text without a leading byte order mark', () => {
    expect(read('{"name":"Jörg 😀"}')).toBe('{"name":"Jörg 😀"}');
    expect(read('\uFEFF{}')).toBe('{}');
    expect(read('{"a":"\uFEFF"}')).toBe('{"a":"\uFEFF"}');
  });

  it('accepts the maximum size and refuses one byte more', () => {
    expect(read('x'.repeat(MAX_BODY_BYTES))).toHaveLength(MAX_BODY_BYTES);
    expect(() => read('x'.repeat(MAX_BODY_BYTES + 1))).toThrow('the body is larger than 1048576 bytes');
  });

  it('refuses a body that is not UTF-8', () => {
    expect(() => read(Buffer.from([0x22, 0xff, 0x22]))).toThrow('the body is not UTF-8');
  });

  it.each([
    ['arrays', ['[', ']']],
    ['objects', ['{"a":', '}']],
  ] as const)('accepts %s nested 64 levels deep and refuses 65', (_kind, brackets) => {
    expect(read(nested(64, brackets))).toBe(nested(64, brackets));
    expect(() => read(nested(65, brackets))).toThrow('the body is nested deeper than 64 levels');
  });

  it('accepts any number of siblings, and of brackets inside strings', () => {
    const pairs = `[${'[],{},'.repeat(100)}1]`;
    expect(read(pairs)).toBe(pairs);
    const text = `{"a":"${'[{'.repeat(100)}"}`;
    expect(read(text)).toBe(text);
  });

  it('counts only brackets outside strings, even with escaped quotes', () => {
    const quoted = `["\\"${'['.repeat(100)}",1]`;
    expect(read(quoted)).toBe(quoted);
    expect(() => read(`["\\\\",${'['.repeat(64)}`)).toThrow('nested deeper');
  });
});
