import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { hash as argon2 } from '@node-rs/argon2';
import { hash as bcrypt, verify as verifyBcrypt } from '@node-rs/bcrypt';
import { testsThatMayNeed } from '@platform/testing';
import { ARGON2ID_COST, costOf, needsUpgrade, readPasswordHash, verifyPassword } from './password-hash';

// Third-party test vectors. They are not copied into the repository, but expected beside the checkout.
const VECTORS = join(__dirname, '../../../../../../shared/vectors');
const { describe: describeWithVectors } = testsThatMayNeed(
  'published vectors of password hashes',
  existsSync(VECTORS) ? null : `${VECTORS} is absent`,
);

function vectors<T>(file: string): T {
  return JSON.parse(readFileSync(join(VECTORS, file), 'utf8')) as T;
}

function unsaltedDigest(digest: 'md5' | 'sha1', password: string): string {
  return createHash(digest).update(password, 'utf8').digest('hex');
}

function verify(stored: string, password: string): Promise<boolean> {
  return verifyPassword(readPasswordHash(stored), password);
}

describe('password hashes', () => {
  it('verifies argon2id, which needs no upgrade', async () => {
    const stored = await argon2('correct horse', ARGON2ID_COST);
    expect(await verify(stored, 'correct horse')).toBe(true);
    expect(await verify(stored, 'correct mouse')).toBe(false);
    expect(needsUpgrade(readPasswordHash(stored))).toBe(false);
  });

  it('distinguishes hashes by cost, including the length of the key', () => {
    const costs = [
      identityV3({ iterations: 1_000, keyBytes: 32 }),
      identityV3({ iterations: 2_000, keyBytes: 32 }),
      identityV3({ iterations: 1_000, keyBytes: 128 }),
    ].map((stored) => costOf(readPasswordHash(stored)));
    expect(new Set(costs).size).toBe(costs.length);
  });

  const SALT = 'c29tZXNhbHRzb21lc2FsdA';
  const KEY = 'H4IiYdxw7hhOF5z4ibxbkCflSdjW1UXVvm27qR/QSTc';
  it.each([
    '$argon2id$',
    '$argon2id$v=19$m=19456,t=2,p=1$$',
    `$argon2id$v=19$m=19456,t=2,p=1$${SALT}$${KEY}=`,
    `$argon2id$v=19$m=19456,t=2,p=1$${SALT}$${KEY.slice(0, -1)}d`,
    `$argon2id$v=19$m=19456,t=2,p=1$${SALT}$${KEY.slice(0, -2)}`,
    `$argon2id$v=19$m=19456,t=2,p=1$c2E$${KEY}`,
    `$argon2id$v=19$m=19456,t=2,p=1$${SALT}`,
    `$argon2id$v=19$m=019456,t=2,p=1$${SALT}$${KEY}`,
    `$argon2id$v=19$m=8,t=1,p=2$${SALT}$${KEY}`,
    `$argon2id$v=19$m=19456,t=0,p=1$${SALT}$${KEY}`,
    `$argon2id$v=19$m=4194304,t=1,p=1$${SALT}$${KEY}`,
    `$argon2id$v=19$m=131072,t=5,p=1$${SALT}$${KEY}`,
    `$argon2id$v=19$m=65536,t=4294967295,p=1$${SALT}$${KEY}`,
    `$argon2id$v=19$m=19456,t=2,p=1$${SALT}$${'A'.repeat(2_000)}`,
    `wrapped-md5$argon2id$v=19$m=4194304,t=2,p=1$${SALT}$${KEY}`,
    'wrapped-sha1$argon2id$',
    identityV3({ iterations: 2_000_001 }),
    identityV3({ keyBytes: 4_096 }),
    identityV3({ saltBytes: 4_096 }),
  ])('rejects %s: malformed, or too expensive for a login', (stored) => {
    expect(readPasswordHash(stored)).toEqual({ scheme: 'unknown' });
  });

  it.each([
    `$argon2id$v=19$m=131072,t=4,p=4$${SALT}$${KEY}`,
    `$argon2id$v=19$m=47104,t=1,p=1$${SALT}$${KEY}`,
    `$argon2id$v=16$m=4096,t=3,p=1$${SALT}$${KEY}`,
    `$argon2id$m=4096,t=3,p=1$${SALT}$${KEY}`,
  ])('accepts %s, and verifying it does not throw', async (stored) => {
    expect(await verifyPassword(readPasswordHash(stored), 'x')).toBe(false);
    expect(readPasswordHash(stored)).toEqual({ scheme: 'argon2id', text: stored });
  });

  it('requires an upgrade of weaker argon2id and of every legacy scheme', async () => {
    const weaker = await argon2('x', { ...ARGON2ID_COST, memoryCost: 8_192 });
    expect(needsUpgrade(readPasswordHash(weaker))).toBe(true);
    expect(needsUpgrade(readPasswordHash(Buffer.alloc(49).toString('base64')))).toBe(true);
  });

  it.each([
    '',
    'plain text',
    '$2b$10$abc',
    `$2x$04$${'a'.repeat(53)}`,
    `$2b$31$${'a'.repeat(53)}`,
    'AQAAAAEAACcQ',
    Buffer.alloc(48).toString('base64'),
    unsaltedDigest('md5', ''),
    unsaltedDigest('sha1', '').toUpperCase(),
    `wrapped-md5$${unsaltedDigest('md5', '')}`,
    'wrapped-md4$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHQ$aGFzaA',
    'aspnet-membership$md5$c2FsdA==$aGFzaA==',
  ])('never verifies %p', async (stored) => {
    expect(readPasswordHash(stored)).toEqual({ scheme: 'unknown' });
    expect(await verify(stored, '')).toBe(false);
  });
});

describe('legacy password hashes', () => {
  it.each(['md5', 'sha1'] as const)('verify an unsalted %s wrapped in argon2id', async (scheme) => {
    const digest = unsaltedDigest(scheme, 'Pässwort');
    const stored = `wrapped-${scheme}${await argon2(digest, ARGON2ID_COST)}`;
    expect(await verify(stored, 'Pässwort')).toBe(true);
    expect(await verify(stored, 'Passwort')).toBe(false);
    // The digest is not the password: a thief of the old table cannot sign in with it.
    expect(await verify(stored, digest)).toBe(false);
    expect(needsUpgrade(readPasswordHash(stored))).toBe(true);
  });

  it('verify bcrypt with each of its prefixes', async () => {
    const text = await bcrypt('x', 4);
    expect(await verify(text, 'x')).toBe(true);
    expect(await verify(text, 'y')).toBe(false);
    expect(await verify(text.replace(/^\$2b/, '$2y'), 'x')).toBe(true);
    expect(needsUpgrade(readPasswordHash(text))).toBe(true);
  });
});

describeWithVectors('published vectors', () => {
  it('agree for ASP.NET Identity V2 and V3', async () => {
    const { password, valid, invalid } = vectors<{
      password: string;
      valid: { hash: string }[];
      invalid: { hash: string }[];
    }>('aspnet-identity/password-hasher.json');
    for (const { hash } of valid)
      expect({ hash, ok: await verify(hash, password) }).toEqual({ hash, ok: true });
    for (const { hash } of invalid)
      expect({ hash, ok: await verify(hash, password) }).toEqual({ hash, ok: false });
  });

  it('agree for ASP.NET membership', async () => {
    const file = vectors<{ vectors: { alg: string; saltB64: string; hashB64: string; password: string }[] }>(
      'legacy-hashes/aspnet-membership.json',
    );
    for (const { alg, saltB64, hashB64, password } of file.vectors) {
      const stored = `aspnet-membership$${alg}$${saltB64}$${hashB64}`;
      expect(await verify(stored, password)).toBe(true);
      expect(await verify(stored, `${password}.`)).toBe(false);
    }
  });

  it('agree for bcrypt', async () => {
    const file = vectors<{ vectors: { passwordHex: string; hash: string }[] }>('legacy-hashes/bcrypt.json');
    for (const { passwordHex, hash } of file.vectors) {
      const bytes = Buffer.from(passwordHex, 'hex');
      // Passwords arrive as text. Vectors that are not valid UTF-8 test the library alone.
      const ok = isUtf8(bytes) ? await verify(hash, bytes.toString('utf8')) : await verifyBcrypt(bytes, hash);
      expect({ hash, ok }).toEqual({ hash, ok: true });
      expect({ hash, ok: await verify(hash, `.${bytes.toString('utf8')}`) }).toEqual({ hash, ok: false });
      expect(readPasswordHash(hash).scheme).toBe('bcrypt');
    }
    expect(new Set(file.vectors.map(({ hash }) => hash.slice(0, 4)))).toEqual(
      new Set(['$2a$', '$2b$', '$2y$']),
    );
  });
});

/** A hash in the form of ASP.NET Identity V3. */
function identityV3({ iterations = 10_000, saltBytes = 16, keyBytes = 32 }): string {
  const header = Buffer.alloc(13);
  header.writeUInt8(1, 0);
  header.writeUInt32BE(1, 1);
  header.writeUInt32BE(iterations, 5);
  header.writeUInt32BE(saltBytes, 9);
  return Buffer.concat([header, Buffer.alloc(saltBytes + keyBytes, 7)]).toString('base64');
}
