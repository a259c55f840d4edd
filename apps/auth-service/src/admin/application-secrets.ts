import { randomBytes } from 'node:crypto';
import { LIVE_SECRETS, applicationSecretPurpose } from '../applications/application';
import type { SecretChange, UnexpiredSecret } from '../applications/application';
import type { SecretBox } from '../keys/secret-box';
import { RefusedError } from './command';

const SECRET_BYTES = 32;

/** A new shared secret: the text to hand over once, and the sealed form to store. */
export interface NewSecret {
  sharedSecret: string;
  sealed: Buffer;
}

export function newSharedSecret(applicationKey: string, box: SecretBox): NewSecret {
  const sharedSecret = randomBytes(SECRET_BYTES).toString('base64url');
  const purpose = applicationSecretPurpose(applicationKey);
  return { sharedSecret, sealed: box.seal(purpose, Buffer.from(sharedSecret)) };
}

/** The parameters of a rotation. */
export interface SecretRotation {
  applicationKey: string;
  sealed: Buffer;
  /** Null: the previous secret stays valid. */
  previousExpiresInSeconds: number | null;
  /** Whether to expire every secret that is not among the newest two after the rotation. */
  force: boolean;
}

/**
 * Adds a secret. An application has at most two accepted secrets, so adding a third needs `force` and expires
 * the oldest at once. Never postpones the expiry of a secret.
 * @param unexpired newest first; null if the application is unknown
 * @throws {RefusedError} if the application is unknown, or `force` is needed
 */
export function rotateSecret(
  unexpired: readonly UnexpiredSecret[] | null,
  { applicationKey, sealed, previousExpiresInSeconds, force }: SecretRotation,
): SecretChange {
  const versions = existing(unexpired, applicationKey).map(({ version }) => version);
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

/**
 * Sets the expiry of one version. Needs `force` to postpone it, or if no other secret of the application
 * stays valid without an expiry.
 * @param unexpired newest first; null if the application is unknown
 * @throws {RefusedError} if the application or the version is unknown, or `force` is needed
 */
export function expireSecret(
  unexpired: readonly UnexpiredSecret[] | null,
  plan: { applicationKey: string; version: number; inSeconds: number; force: boolean },
): SecretChange {
  const { applicationKey, version, inSeconds, force } = plan;
  const secrets = existing(unexpired, applicationKey);
  const expiring = secrets.find((secret) => secret.version === version);
  if (expiring === undefined)
    throw new RefusedError(`${applicationKey} has no valid secret of version ${version}`);
  const others = secrets.filter((secret) => secret !== expiring);
  if (!force) {
    refuseLockout(others, plan);
    refusePostponement(expiring, plan);
  }
  return { add: null, expire: [{ versions: [version], inSeconds, postpones: force }] };
}

function refuseLockout(
  others: readonly UnexpiredSecret[],
  { applicationKey, version }: { applicationKey: string; version: number },
): void {
  if (others.some(({ secondsLeft }) => secondsLeft === null)) return;
  const advice = 'rotate-secret first, or pass --force to lock it out';
  if (others.length === 0)
    throw new RefusedError(`version ${version} is the only valid secret of ${applicationKey}: ${advice}`);
  const left = others.map((other) => `version ${other.version} in ${duration(other.secondsLeft ?? 0)}`);
  throw new RefusedError(
    `version ${version} is the only secret of ${applicationKey} that stays valid; ${left.join(', ')} expires: ${advice}`,
  );
}

function refusePostponement(
  { secondsLeft }: UnexpiredSecret,
  { version, inSeconds }: { version: number; inSeconds: number },
): void {
  if (secondsLeft === null || inSeconds <= secondsLeft) return;
  throw new RefusedError(
    `version ${version} expires in ${duration(secondsLeft)} already: pass --force to let it expire later`,
  );
}

function duration(seconds: number): string {
  const units = [
    [86_400, 'd'],
    [3_600, 'h'],
    [60, 'min'],
  ] as const;
  const [size, unit] = units.find(([each]) => seconds >= each) ?? [1, 's'];
  return `${String(Math.floor(seconds / size))} ${unit}`;
}

function existing(
  unexpired: readonly UnexpiredSecret[] | null,
  applicationKey: string,
): readonly UnexpiredSecret[] {
  if (unexpired !== null) return unexpired;
  throw new RefusedError(`there is no application "${applicationKey}"`);
}
