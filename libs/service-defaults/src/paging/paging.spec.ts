import fc from 'fast-check';
import { pageSizeQuery, ProblemException, SignedCursor } from '../index';

const cursor = new SignedCursor(Buffer.alloc(32, 1));

describe('SignedCursor', () => {
  it('gives back every position', () => {
    fc.assert(
      fc.property(fc.string(), fc.array(fc.jsonValue()), (list, position) => {
        expect(cursor.decode(list, cursor.encode(list, position))).toEqual(
          JSON.parse(JSON.stringify(position)),
        );
      }),
    );
  });

  it('refuses the cursor of another list or key', () => {
    const text = cursor.encode('settings', ['a', 1]);
    expect(() => cursor.decode('settings/a', text)).toThrow(ProblemException);
    expect(() => new SignedCursor(Buffer.alloc(32, 2)).decode('settings', text)).toThrow(ProblemException);
  });

  it('refuses every change of a character, and every other text, with 400', () => {
    const text = cursor.encode('settings', ['a']);
    for (let at = 0; at < text.length; at += 1) {
      const changed = text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1);
      expect(() => cursor.decode('settings', changed)).toThrow(expect.objectContaining({ status: 400 }));
    }
    for (const other of [
      '',
      '=',
      `${text}=`,
      ` ${text}`,
      `${text}\n`,
      text.slice(0, 21),
      'x'.repeat(10_000),
    ]) {
      expect(() => cursor.decode('settings', other)).toThrow(ProblemException);
    }
  });

  it('needs a key of 32 bytes', () => {
    expect(() => new SignedCursor(Buffer.alloc(31))).toThrow(RangeError);
  });
});

describe('pageSizeQuery', () => {
  it('is 100 unless given, and from 1 to 1,000', () => {
    expect([undefined, '1', '999', '1000'].map((text) => pageSizeQuery.parse(text))).toEqual([
      100, 1, 999, 1_000,
    ]);
  });

  it.each(['0', '1001', '-1', '1.5', '1e3', ' 1', '01', '', 'x'])('refuses %p', (text) => {
    expect(pageSizeQuery.safeParse(text).success).toBe(false);
  });
});
