import { hash as argon2 } from '@node-rs/argon2';
import { ARGON2ID_COST, WRAPPED, readPasswordHash } from './password-hash';
import { canonicalDigest } from './unsalted-digest';

/** A password hash as another system kept it. `asp-net-membership` is `aspnet_Membership` with PasswordFormat 1: salt and hash
 *  in base64. `modular` is a hash that names its own scheme: argon2id, bcrypt, ASP.NET Identity. */
export type ForeignPasswordHash =
  | { scheme: 'md5' | 'sha1'; hexadecimal: string }
  | { scheme: 'aspnet-membership'; digest: 'sha1' | 'sha256'; salt: string; hash: string }
  | { scheme: 'modular'; text: string };

/** The text to store for a hash that comes from another system. Digests without a salt are never stored as they are: anybody who
 *  saw them could look the passwords up, so argon2id goes around them. All others are upgraded at the next login.
 *  @throws {RangeError} for what is not a hash of its scheme, and so could never verify; the message does not repeat it */
export async function importPasswordHash(foreign: ForeignPasswordHash): Promise<string> {
  switch (foreign.scheme) {
    case 'md5':
    case 'sha1': {
      const digest = canonicalDigest(foreign.scheme, foreign.hexadecimal);
      return `${WRAPPED}${foreign.scheme}${await argon2(digest, ARGON2ID_COST)}`;
    }
    case 'aspnet-membership':
      return readable(`aspnet-membership$${foreign.digest}$${foreign.salt}$${foreign.hash}`);
    case 'modular':
      return readable(foreign.text);
  }
}

function readable(stored: string): string {
  if (readPasswordHash(stored).scheme === 'unknown')
    throw new RangeError('not a password hash of a known scheme');
  return stored;
}
