import { randomBytes } from 'node:crypto';
import { SecretBox, SecretBoxError } from './secret-box';

const [old, young] = [
  { kid: '1', secret: randomBytes(32) },
  { kid: 'of-2026', secret: randomBytes(32) },
];
const secret = Buffer.from('a shared secret');
const PURPOSE = 'application:a';

describe.each([
  ['the unnamed key', old],
  ['a named key', young],
])('a secret box with %s', (_, key) => {
  const box = new SecretBox([key]);

  it('opens what it sealed, and seals the same secret differently each time', () => {
    const sealed = box.seal(PURPOSE, secret);
    expect(box.open(PURPOSE, sealed)).toEqual(secret);
    expect(box.seal(PURPOSE, secret)).not.toEqual(sealed);
    expect(sealed.includes(secret)).toBe(false);
    expect(sealed.subarray(0, box.currentPrefix.length)).toEqual(box.currentPrefix);
  });

  it('refuses another key, another purpose, a changed byte and a truncated secret', () => {
    const sealed = box.seal(PURPOSE, secret);
    const others = [
      new SecretBox([{ ...key, secret: randomBytes(32) }]),
      new SecretBox([{ ...key, kid: 'x' }]),
    ];
    for (const other of others) expect(() => other.open(PURPOSE, sealed)).toThrow(SecretBoxError);
    expect(() => box.open('application:b', sealed)).toThrow(SecretBoxError);
    for (let position = 0; position < sealed.length; position += 1) {
      const changed = Buffer.from(sealed);
      changed.writeUInt8(changed.readUInt8(position) ^ 1, position);
      expect(() => box.open(PURPOSE, changed)).toThrow(SecretBoxError);
    }
    for (let length = 0; length < sealed.length; length += 1)
      expect(() => box.open(PURPOSE, sealed.subarray(0, length))).toThrow(SecretBoxError);
  });
});

describe('a secret box with two keys', () => {
  it('seals with the first and opens with both', () => {
    const [before, after] = [new SecretBox([old, young]), new SecretBox([young, old])];
    const [ofOld, ofYoung] = [before.seal(PURPOSE, secret), after.seal(PURPOSE, secret)];
    for (const box of [before, after])
      for (const sealed of [ofOld, ofYoung]) expect(box.open(PURPOSE, sealed)).toEqual(secret);
    expect(() => new SecretBox([young]).open(PURPOSE, ofOld)).toThrow('sealed with the unknown key 1');
    expect(() => new SecretBox([old]).open(PURPOSE, ofYoung)).toThrow('the unknown key of-2026');
  });

  it('seals with key 1 in the format of releases with a single key', () => {
    expect(new SecretBox([old, young]).seal(PURPOSE, secret)[0]).toBe(1);
  });
});
