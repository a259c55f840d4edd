import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { hash as argon2 } from '@node-rs/argon2';
import { ARGON2ID_COST, needsUpgrade, readPasswordHash, verifyPassword } from './password-hash';

// The vectors are other people's and are not copied here; they lie beside the checkout where they exist.
const VECTORS = join(__dirname, '../../../../../../shared/vectors');
const vectorsPresent = existsSync(VECTORS);
if (!vectorsPresent)
  process.stderr.write(`password-hash vectors are absent (${VECTORS}): their tests are skipped\n`);
const withVectors = vectorsPresent ? describe : describe.skip;

function vectors<T>(file: string): T {
  return JSON.parse(readFileSync(join(VECTORS, file), 'utf8')) as T;
}

function verify(stored: string, password: string): Promise<boolean> {
  return verifyPassword(readPasswordHash(stored), password);
}

describe('password hashes', () => {
  it('verifies argon2id and leaves it as it is', async () => {
    const stored = await argon2('correct horse', ARGON2ID_COST);
    expect(await verify(stored, 'correct horse')).toBe(true);
    expect(await verify(stored, 'correct mouse')).toBe(false);
    expect(needsUpgrade(readPasswordHash(stored))).toBe(false);
  });

  it('asks for an upgrade of weaker argon2id and of every legacy scheme', async () => {
    const weaker = await argon2('x', { ...ARGON2ID_COST, memoryCost: 8_192 });
    expect(needsUpgrade(readPasswordHash(weaker))).toBe(true);
    expect(needsUpgrade(readPasswordHash(Buffer.alloc(49).toString('base64')))).toBe(true);
  });

  it.each(['', 'plain text', '$2b$10$abc', 'AQAAAAEAACcQ', Buffer.alloc(48).toString('base64')])(
    'never verifies %p',
    async (stored) => {
      expect(readPasswordHash(stored)).toEqual({ scheme: 'unknown' });
      expect(await verify(stored, '')).toBe(false);
    },
  );
});

withVectors('published vectors', () => {
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
});
