import { dirname, join } from 'node:path';
import { withoutDeepHeaders } from './header-guard';

// Required by path, because the package does not export its decoder.
// eslint-disable-next-line @typescript-eslint/no-require-imports
const frames = require(join(dirname(require.resolve('amqplib')), 'lib/frame')) as {
  parseFrame(bytes: Buffer, max: number): { rest: Buffer };
  decodeFrame(frame: unknown): {
    size: number;
    fields: { headers?: Record<string, unknown>; messageId?: string };
  };
};

const shortText = (text: string): Buffer => Buffer.concat([Buffer.from([text.length]), Buffer.from(text)]);
const withLength = (content: Buffer): Buffer => {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(content.length);
  return Buffer.concat([length, content]);
};
const member = (name: string, tag: string, value: Buffer): Buffer =>
  Buffer.concat([shortText(name), Buffer.from(tag), value]);
const textMember = (name: string, text: string): Buffer => member(name, 'S', withLength(Buffer.from(text)));

/** Returns the members of a table that nests tables, or lists, to `depth`. */
function nested(depth: number, tag: 'F' | 'A'): Buffer {
  let content: Buffer = Buffer.alloc(0);
  for (let level = 0; level < depth; level += 1)
    content =
      tag === 'F'
        ? member('n', 'F', withLength(content))
        : Buffer.concat([Buffer.from('A'), withLength(content)]);
  return tag === 'F' ? content : Buffer.concat([shortText('n'), content]);
}

/** A header frame as a broker sends it, with a content type, the table and a message id. */
function frameWith(table: Buffer): Buffer {
  const head = Buffer.alloc(14);
  head.writeUInt16BE(60, 0);
  head.writeBigInt64BE(123n, 4);
  head.writeUInt16BE(0xa080, 12);
  const payload = Buffer.concat([head, shortText('application/json'), withLength(table), shortText('id-1')]);
  const start = Buffer.from([2, 0, 7]);
  return Buffer.concat([start, withLength(payload), Buffer.from([0xce])]);
}

function decoded(bytes: Buffer) {
  const frame = frames.parseFrame(bytes, 0);
  return { ...frames.decodeFrame(frame), rest: frame.rest };
}

const FOLLOWING = Buffer.from('what follows');

describe('header tables in received frames', () => {
  it.each([
    ['tables', nested(8_000, 'F')],
    ['lists', nested(8_000, 'A')],
    ['65 tables', nested(65, 'F')],
  ])('are dropped when they nest too many %s', (_what, deep) => {
    const received = Buffer.concat([
      frameWith(Buffer.concat([textMember('tenant', 'acme'), deep])),
      FOLLOWING,
    ]);
    const { size, fields, rest } = decoded(withoutDeepHeaders(received));
    expect(fields).toMatchObject({
      contentType: 'application/json',
      headers: { 'x-headers-dropped': 1 },
      messageId: 'id-1',
    });
    expect(size).toBe(123);
    expect(rest).toEqual(FOLLOWING);
  });

  it('exhaust the stack without the guard', () => {
    expect(() => decoded(frameWith(nested(8_000, 'F')))).toThrow(RangeError);
  });

  it('are dropped when they hold a type that the client does not know', () => {
    const odd = Buffer.concat([textMember('long', 'x'.repeat(400)), member('odd', '?', Buffer.alloc(0))]);
    expect(decoded(withoutDeepHeaders(frameWith(odd))).fields.headers).toEqual({ 'x-headers-dropped': 1 });
  });

  it.each([
    ['of 60 levels', nested(60, 'F')],
    ['of every type', everyType()],
    ['that are long', textMember('long', 'x'.repeat(60_000))],
  ])('are unchanged %s', (_what, table) => {
    const received = Buffer.concat([frameWith(table), FOLLOWING]);
    expect(withoutDeepHeaders(received)).toBe(received);
    expect(decoded(received).rest).toEqual(FOLLOWING);
  });

  it('are unchanged while the frame is incomplete', () => {
    const whole = frameWith(nested(8_000, 'F'));
    for (const length of [0, 5, 20, 30, whole.length - 1]) {
      const received = whole.subarray(0, length);
      expect(withoutDeepHeaders(received)).toBe(received);
    }
  });
});

function everyType(): Buffer {
  const sizes = { V: 0, t: 1, b: 1, B: 1, s: 2, u: 2, I: 4, i: 4, f: 4, D: 5, l: 8, d: 8, T: 8 };
  const fixed = Object.entries(sizes).map(([tag, size]) => member(`of ${tag}`, tag, Buffer.alloc(size)));
  const list = Buffer.concat([Buffer.from('I'), Buffer.alloc(4), Buffer.from('V')]);
  return Buffer.concat([
    ...fixed,
    member('bytes', 'x', withLength(Buffer.alloc(300))),
    member('list', 'A', withLength(list)),
    member('table', 'F', withLength(Buffer.concat(fixed))),
  ]);
}
