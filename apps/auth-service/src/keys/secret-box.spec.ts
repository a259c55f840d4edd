import { randomBytes } from 'node:crypto';
import { SecretBoxError, openSecret, sealSecret } from './secret-box';

const key = randomBytes(32);
const secret = Buffer.from('a shared secret');

describe('secret box', () => {
  it('opens what it sealed, and seals the same secret differently each time', () => {
    const box = sealSecret(key, 'application:a', secret);
    expect(openSecret(key, 'application:a', box)).toEqual(secret);
    expect(sealSecret(key, 'application:a', secret)).not.toEqual(box);
    expect(box.includes(secret)).toBe(false);
  });

  it('refuses another key, another purpose, a changed byte and a cut box', () => {
    const box = sealSecret(key, 'application:a', secret);
    expect(() => openSecret(randomBytes(32), 'application:a', box)).toThrow(SecretBoxError);
    expect(() => openSecret(key, 'application:b', box)).toThrow(SecretBoxError);
    for (const position of [0, 5, 15, box.length - 1]) {
      const changed = Buffer.from(box);
      changed.writeUInt8(changed.readUInt8(position) ^ 1, position);
      expect(() => openSecret(key, 'application:a', changed)).toThrow(SecretBoxError);
    }
    expect(() => openSecret(key, 'application:a', box.subarray(0, 20))).toThrow(SecretBoxError);
  });
});
