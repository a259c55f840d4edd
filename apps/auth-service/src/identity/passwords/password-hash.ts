import { createHash, pbkdf2, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { hash as argon2, verify as verifyArgon2 } from '@node-rs/argon2';
import { verify as verifyBcrypt } from '@node-rs/bcrypt';

const pbkdf2Async = promisify(pbkdf2);

/** Unsalted digests of the oldest stores. */
export type UnsaltedDigest = 'md5' | 'sha1';

/**
 * The parameters for new hashes: argon2id with 19 MiB, two passes, parallelism 1. Source: OWASP's first
 * recommendation.
 */
export const ARGON2ID_COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const;

/** A parsed password hash. `unknown` never verifies. */
export type PasswordHash =
  | { scheme: 'argon2id'; text: string }
  | { scheme: 'pbkdf2'; digest: 'sha1' | 'sha256' | 'sha512'; iterations: number; salt: Buffer; key: Buffer }
  | { scheme: 'aspnet-membership'; digest: 'sha1' | 'sha256'; salt: Buffer; key: Buffer }
  | { scheme: 'bcrypt'; text: string }
  | { scheme: 'wrapped'; digest: UnsaltedDigest; text: string }
  | { scheme: 'unknown' };

/** Prefix of a hash that was an unsalted digest in its old store. The digest's name follows. */
const WRAPPED = 'wrapped-';

const UNKNOWN: PasswordHash = { scheme: 'unknown' };
const V3_DIGESTS = ['sha1', 'sha256', 'sha512'] as const;
// Limits on the cost of one login. A hash that takes longer than about 2 s does not come from a real store,
// but could keep this service busy.
const MAX_ITERATIONS = 2_000_000;
const MAX_PBKDF2_BYTES = 128;
const MAX_ARGON2_MEMORY_KIB = 131_072;
/** Maximum product of memory in KiB and passes. The time of an argon2 hash is roughly proportional to it. */
const MAX_ARGON2_WORK = 524_288;
const ARGON2ID = '$argon2id$';
// bcrypt costs from 4 to 16. Higher costs take longer than about 2 s.
const BCRYPT = /^\$2[aby]\$(0[4-9]|1[0-6])\$[./A-Za-z0-9]{53}$/;

/**
 * Parses a stored hash: argon2id (PHC string), bcrypt (`$2a$`, `$2b$`, `$2y$`), ASP.NET Identity V2 or V3
 * (base64 with a format marker), ASP.NET membership (`aspnet-membership$<sha1|sha256>$<salt>$<hash>`, both
 * base64), or an unsalted digest wrapped in argon2id (`wrapped-<md5|sha1>` and the PHC string of the digest).
 * A bare MD5 or SHA-1 is `unknown`.
 */
export function readPasswordHash(stored: string): PasswordHash {
  if (stored.startsWith(ARGON2ID)) return isArgon2id(stored) ? { scheme: 'argon2id', text: stored } : UNKNOWN;
  if (stored.startsWith('aspnet-membership$')) return readMembership(stored);
  if (BCRYPT.test(stored)) return { scheme: 'bcrypt', text: stored };
  if (stored.startsWith(WRAPPED)) return readWrapped(stored);
  const bytes = decodeBase64(stored);
  if (bytes === null) return UNKNOWN;
  if (bytes[0] === 0x00) return readIdentityV2(bytes);
  return bytes[0] === 0x01 ? readIdentityV3(bytes) : UNKNOWN;
}

/** A PHC string of argon2id. Numbers have no leading zeros; salt and hash are base64 without padding. */
const PHC =
  /^\$argon2id\$(?:v=(?:16|19)\$)?m=([1-9]\d{0,6}),t=([1-9]\d?),p=([1-9]\d?)\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{16,86})$/;

/** Whether the argon2 library accepts this string (it throws otherwise) and its cost is within the limits. */
function isArgon2id(text: string): boolean {
  const [, memory = '', passes = '', lanes = '', salt = '', key = ''] = PHC.exec(text) ?? [];
  const [memoryKib, timeCost, parallelism] = [memory, passes, lanes].map(Number) as [number, number, number];
  const isAffordable = memoryKib <= MAX_ARGON2_MEMORY_KIB && memoryKib * timeCost <= MAX_ARGON2_WORK;
  return memoryKib >= 8 * Math.max(parallelism, 1) && isAffordable && [salt, key].every(isUnpaddedBase64);
}

function isUnpaddedBase64(text: string): boolean {
  return Buffer.from(text, 'base64').toString('base64').replace(/=+$/, '') === text;
}

/** Identity V2: marker 00, 16 bytes of salt, 32 bytes of PBKDF2-HMAC-SHA1 with 1,000 iterations. */
function readIdentityV2(bytes: Buffer): PasswordHash {
  if (bytes.length !== 1 + 16 + 32) return UNKNOWN;
  return {
    scheme: 'pbkdf2',
    digest: 'sha1',
    iterations: 1_000,
    salt: bytes.subarray(1, 17),
    key: bytes.subarray(17),
  };
}

/**
 * Identity V3: marker 01; digest, iterations and salt length, each big-endian; then salt and key, each at
 * least 16 bytes.
 */
function readIdentityV3(bytes: Buffer): PasswordHash {
  if (bytes.length < 13) return UNKNOWN;
  const digest = V3_DIGESTS[bytes.readUInt32BE(1)];
  const iterations = bytes.readUInt32BE(5);
  const saltLength = bytes.readUInt32BE(9);
  if (digest === undefined || iterations < 1 || iterations > MAX_ITERATIONS) return UNKNOWN;
  const keyLength = bytes.length - 13 - saltLength;
  if (saltLength < 16 || keyLength < 16) return UNKNOWN;
  // PBKDF2 repeats all iterations for each block of the key.
  if (saltLength > MAX_PBKDF2_BYTES || keyLength > MAX_PBKDF2_BYTES) return UNKNOWN;
  const salt = bytes.subarray(13, 13 + saltLength);
  return { scheme: 'pbkdf2', digest, iterations, salt, key: bytes.subarray(13 + saltLength) };
}

function readMembership(stored: string): PasswordHash {
  const [, digest, salt, hash] = stored.split('$');
  if ((digest !== 'sha1' && digest !== 'sha256') || salt === undefined || hash === undefined) return UNKNOWN;
  return {
    scheme: 'aspnet-membership',
    digest,
    salt: Buffer.from(salt, 'base64'),
    key: Buffer.from(hash, 'base64'),
  };
}

function readWrapped(stored: string): PasswordHash {
  const start = stored.indexOf(ARGON2ID);
  const digest = start === -1 ? '' : stored.slice(WRAPPED.length, start);
  const text = stored.slice(start);
  if ((digest !== 'md5' && digest !== 'sha1') || !isArgon2id(text)) return UNKNOWN;
  return { scheme: 'wrapped', digest, text };
}

/** Decodes base64 as .NET writes it: padded, no other characters. Returns null for anything else. */
function decodeBase64(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64');
  return bytes.length > 0 && bytes.toString('base64') === text ? bytes : null;
}

/** Whether `password` matches `hash`. The comparison runs in constant time. */
export async function verifyPassword(hash: PasswordHash, password: string): Promise<boolean> {
  switch (hash.scheme) {
    case 'argon2id':
      return verifyArgon2(hash.text, password);
    case 'pbkdf2': {
      const derived = await pbkdf2Async(password, hash.salt, hash.iterations, hash.key.length, hash.digest);
      return timingSafeEqual(derived, hash.key);
    }
    case 'aspnet-membership': {
      const computed = createHash(hash.digest).update(hash.salt).update(password, 'utf16le').digest();
      return computed.length === hash.key.length && timingSafeEqual(computed, hash.key);
    }
    case 'bcrypt':
      return verifyBcrypt(password, hash.text);
    case 'wrapped':
      // The wrapped digest is lower-case hexadecimal.
      return verifyArgon2(hash.text, createHash(hash.digest).update(password, 'utf8').digest('hex'));
    case 'unknown':
      return false;
  }
}

/** Wraps a bare digest in argon2id for storage. @param digest lower-case hexadecimal */
export async function wrapDigest(name: UnsaltedDigest, digest: string): Promise<string> {
  return `${WRAPPED}${name}${await argon2(digest, ARGON2ID_COST)}`;
}

/** Whether verifying `hash` includes an argon2id computation. Every login must include at least one. */
export function costsArgon2(hash: PasswordHash): boolean {
  return hash.scheme === 'argon2id' || hash.scheme === 'wrapped';
}

/** Returns a key for the cost of verifying `hash`. Hashes with the same key take the same time. */
export function costOf(hash: PasswordHash): string {
  switch (hash.scheme) {
    case 'pbkdf2':
      // PBKDF2 repeats all iterations for each block of the key.
      return `${hash.digest} ${String(hash.iterations)} ${String(hash.key.length)}`;
    case 'bcrypt':
      return hash.text.slice(0, '$2b$12'.length);
    case 'argon2id':
    case 'wrapped':
      return hash.text.split('$').slice(0, 4).join('$');
    case 'aspnet-membership':
    case 'unknown':
      return hash.scheme;
  }
}

/** Whether to hash the password anew at the next successful login. */
export function needsUpgrade(hash: PasswordHash): boolean {
  if (hash.scheme !== 'argon2id') return true;
  const { memoryCost, timeCost, parallelism } = ARGON2ID_COST;
  return !hash.text.startsWith(`${ARGON2ID}v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$`);
}
