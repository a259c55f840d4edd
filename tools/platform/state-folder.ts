import { createHash } from 'node:crypto';
import { existsSync, lstatSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { FriendlyError } from './friendly-error.ts';
import { findRunAs, isReachableBy } from './run-as.ts';

/**
 * Where the platform of a checkout keeps its data, logs and secrets: `.platform` in the checkout, or, when the account
 * that runs the servers cannot get there (a root's checkout under /root), a folder of its own under /var/tmp.
 */
export function stateFolderFor(checkout: string, isReachable: (path: string) => boolean): string {
  const inside = join(checkout, '.platform');
  if (isReachable(inside)) return inside;
  const key = createHash('sha256').update(checkout).digest('hex').slice(0, 12);
  return `/var/tmp/property-platform-${key}`;
}

/**
 * Finds and makes the state folder of this checkout.
 * @throws {FriendlyError} when it belongs to another user (anybody may make folders under /var/tmp).
 */
export function openStateFolder(checkout: string): string {
  const runAs = findRunAs();
  const folder = stateFolderFor(checkout, (path) => runAs === null || isReachableBy(path, runAs));
  if (!existsSync(folder)) mkdirSync(folder, { mode: 0o755 });
  const status = lstatSync(folder);
  if (!status.isDirectory() || (process.getuid && status.uid !== process.getuid())) {
    throw new FriendlyError(
      `${folder} belongs to user ${status.uid}: this platform was started by somebody else before. ` +
        'Start it as that user again, or remove the folder.',
    );
  }
  return folder;
}
