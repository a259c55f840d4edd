import { createHash } from 'node:crypto';

/** Digests without a salt, as the oldest stores kept them. */
const UNSALTED_DIGESTS = { md5: 32, sha1: 40 } as const;

export type UnsaltedDigest = keyof typeof UNSALTED_DIGESTS;

export function isUnsaltedDigest(name: string): name is UnsaltedDigest {
  return Object.hasOwn(UNSALTED_DIGESTS, name);
}

/** The digest of a password's UTF-8 bytes, in lower-case hexadecimal. Safe only as the input of a real password hash. */
export function unsaltedDigest(digest: UnsaltedDigest, password: string): string {
  return createHash(digest).update(password, 'utf8').digest('hex');
}

/** A digest from elsewhere in the one spelling that is hashed: lower-case hexadecimal.
 *  @throws {RangeError} when it is not hexadecimal or has not the digest's length; the message does not repeat it */
export function canonicalDigest(digest: UnsaltedDigest, hexadecimal: string): string {
  const length = UNSALTED_DIGESTS[digest];
  const canonical = hexadecimal.toLowerCase();
  if (canonical.length !== length || !/^[\da-f]*$/.test(canonical)) {
    throw new RangeError(`not a ${digest} digest: ${String(length)} hexadecimal digits are expected`);
  }
  return canonical;
}
