import fc from 'fast-check';
import { z } from 'zod';
import { cursorConfigShape, pageSizeQuery, ProblemException, SignedCursor } from '../index';

const cursor = new SignedCursor(Buffer.alloc(32, 1));

describe('SignedCursor', () => {
  it('decodes every encoded position', () => {
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

  it('refuses any changed character and any other text with 400', () => {
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

  it("accepts the cursors of replicas with the other step's keys, at every step of a rotation", () => {
    const [old, next] = [Buffer.alloc(32, 3), Buffer.alloc(32, 4)];
    const steps = [
      new SignedCursor(old),
      new SignedCursor(old, [next]),
      new SignedCursor(next, [old]),
      new SignedCursor(next),
    ];
    for (let step = 0; step + 1 < steps.length; step += 1) {
      const [before, after] = [steps[step]!, steps[step + 1]!];
      for (const [from, to] of [
        [before, after],
        [after, before],
      ] as const)
        expect(to.decode('list', from.encode('list', [7]))).toEqual([7]);
    }
    expect(() => steps[3]!.decode('list', steps[0]!.encode('list', [7]))).toThrow(ProblemException);
    expect(() => steps[2]!.decode('list', cursor.encode('list', [7]))).toThrow(ProblemException);
  });

  it('needs a key of 32 bytes', () => {
    expect(() => new SignedCursor(Buffer.alloc(31))).toThrow(RangeError);
    expect(() => new SignedCursor(Buffer.alloc(32), [Buffer.alloc(31)])).toThrow(RangeError);
  });
});

describe('cursorConfigShape', () => {
  const text = (byte: number, length = 32): string => Buffer.alloc(length, byte).toString('base64url');
  const load = (previous?: string) =>
    z.object(cursorConfigShape).safeParse({ CURSOR_HMAC_KEY: text(1), CURSOR_HMAC_KEY_PREVIOUS: previous });

  it('accepts zero, one or several previous keys', () => {
    for (const [given, expected] of [
      [undefined, []],
      ['', []],
      [text(2), [text(2)]],
      [`${text(2)},${text(3)}`, [text(2), text(3)]],
    ] as const)
      expect(load(given).data?.CURSOR_HMAC_KEY_PREVIOUS.map((key) => key.toString('base64url'))).toEqual(
        expected,
      );
  });

  it.each(['short', text(2, 31), `${text(2)};${text(3)}`, `${text(2)},short`])('refuses %p', (given) => {
    expect(load(given).success).toBe(false);
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
