import { LIVE_SECRETS } from '../applications/application';
import type { ApplicationSecrets } from '../applications/change-application-secrets.query';
import { RefusedError } from './command';

/** How a secret is to be added. */
export interface SecretRotation {
  applicationKey: string;
  /** null: the secret before stays valid. */
  previousExpiresInSeconds: number | null;
  /** Expire what would no longer count. */
  force: boolean;
}

/** What a rotation changed. */
export interface RotatedSecret {
  version: number;
  expired: { version: number; expiresAt: Date }[];
}

/** Adds a secret. Only the newest two count, so a third would silently end the oldest: that takes force.
 *  @throws {RefusedError} */
export async function addSecret(
  secrets: ApplicationSecrets | null,
  sealed: Buffer,
  { applicationKey, previousExpiresInSeconds, force }: SecretRotation,
): Promise<RotatedSecret> {
  const { unexpired, add, expire } = existing(secrets, applicationKey);
  const versions = unexpired.map(({ version }) => version);
  const surplus = versions.slice(LIVE_SECRETS - 1);
  if (surplus.length > 0 && !force) {
    throw new RefusedError(
      `${applicationKey} has ${versions.length} valid secrets (versions ${versions.join(', ')}): let one expire with ` +
        `applications expire-secret ${applicationKey} ${surplus.at(-1)!}, or pass --force`,
    );
  }
  const kept = versions.slice(0, LIVE_SECRETS - 1);
  const version = await add(sealed);
  const ended = await expire(surplus, 0);
  const ending = previousExpiresInSeconds === null ? [] : await expire(kept, previousExpiresInSeconds);
  return { version, expired: [...ended, ...ending] };
}

/** Lets one version expire. @returns when it does @throws {RefusedError} */
export async function expireSecret(
  secrets: ApplicationSecrets | null,
  plan: { applicationKey: string; version: number; inSeconds: number; force: boolean },
): Promise<Date> {
  const { applicationKey, version } = plan;
  const { unexpired, expire } = existing(secrets, applicationKey);
  if (!unexpired.some((each) => each.version === version))
    throw new RefusedError(`${applicationKey} has no valid secret of version ${version}`);
  if (unexpired.length === 1 && !plan.force) {
    throw new RefusedError(
      `version ${version} is the only valid secret of ${applicationKey}: rotate-secret first, or pass --force to lock it out`,
    );
  }
  const [expired] = await expire([version], plan.inSeconds);
  return expired!.expiresAt;
}

function existing(secrets: ApplicationSecrets | null, applicationKey: string): ApplicationSecrets {
  if (secrets !== null) return secrets;
  throw new RefusedError(`there is no application "${applicationKey}"`);
}
