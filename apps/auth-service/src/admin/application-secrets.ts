import { randomBytes } from 'node:crypto';
import { LIVE_SECRETS, applicationSecretPurpose } from '../applications/application';
import type { SecretChange } from '../applications/application';
import type { SecretBox } from '../keys/secret-box';
import { RefusedError } from './command';

const SECRET_BYTES = 32;

/** A fresh shared secret: the text to hand over once, and the form that is stored. */
export interface NewSecret {
  sharedSecret: string;
  sealed: Buffer;
}

export function newSharedSecret(applicationKey: string, box: SecretBox): NewSecret {
  const sharedSecret = randomBytes(SECRET_BYTES).toString('base64url');
  const purpose = applicationSecretPurpose(applicationKey);
  return { sharedSecret, sealed: box.seal(purpose, Buffer.from(sharedSecret)) };
}

/** How a secret is to be added. */
export interface SecretRotation {
  applicationKey: string;
  sealed: Buffer;
  /** null: the previous secret stays valid. */
  previousExpiresInSeconds: number | null;
  /** Expire the secrets that would no longer count. */
  force: boolean;
}

/** Adds a secret. Only the newest two count, so a third would silently end the oldest: that takes force.
 *  @param unexpired versions, newest first; null when there is no such application
 *  @throws {RefusedError} */
export function rotateSecret(
  unexpired: readonly number[] | null,
  { applicationKey, sealed, previousExpiresInSeconds, force }: SecretRotation,
): SecretChange {
  const versions = existing(unexpired, applicationKey);
  const surplus = versions.slice(LIVE_SECRETS - 1);
  if (surplus.length > 0 && !force) {
    throw new RefusedError(
      `${applicationKey} has ${versions.length} valid secrets (versions ${versions.join(', ')}): let one expire with ` +
        `applications expire-secret ${applicationKey} ${surplus.at(-1)!}, or pass --force`,
    );
  }
  const expire = [{ versions: surplus, inSeconds: 0 }];
  if (previousExpiresInSeconds !== null)
    expire.push({ versions: versions.slice(0, LIVE_SECRETS - 1), inSeconds: previousExpiresInSeconds });
  return { add: sealed, expire };
}

/** Lets one version expire. The last valid secret of an application takes force.
 *  @param unexpired versions, newest first; null when there is no such application
 *  @throws {RefusedError} */
export function expireSecret(
  unexpired: readonly number[] | null,
  plan: { applicationKey: string; version: number; inSeconds: number; force: boolean },
): SecretChange {
  const { applicationKey, version, inSeconds } = plan;
  const versions = existing(unexpired, applicationKey);
  if (!versions.includes(version))
    throw new RefusedError(`${applicationKey} has no valid secret of version ${version}`);
  if (versions.length === 1 && !plan.force) {
    throw new RefusedError(
      `version ${version} is the only valid secret of ${applicationKey}: rotate-secret first, or pass --force to lock it out`,
    );
  }
  return { add: null, expire: [{ versions: [version], inSeconds }] };
}

function existing(unexpired: readonly number[] | null, applicationKey: string): readonly number[] {
  if (unexpired !== null) return unexpired;
  throw new RefusedError(`there is no application "${applicationKey}"`);
}
