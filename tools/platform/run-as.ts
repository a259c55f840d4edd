import { chownSync, existsSync, lstatSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { FriendlyError } from './errors.ts';

/**
 * The unprivileged account of PostgreSQL and RabbitMQ when this process is root: PostgreSQL refuses to run as
 * root, and RabbitMQ should not.
 */
export interface RunAs {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Returns the account for the servers: the existing account `nobody` if this process is root, otherwise null,
 * which stands for this process's own account.
 * @throws {FriendlyError} if this process is root and the system has no `nobody`.
 */
export function findRunAs(): RunAs | null {
  if (process.getuid?.() !== 0) return null;
  const nobody = parsePasswd(readFileSync('/etc/passwd', 'utf8'), 'nobody');
  if (nobody === null || nobody.uid === 0) {
    throw new FriendlyError(
      'PostgreSQL refuses to run as root and this system has no user "nobody": run as an ordinary user.',
    );
  }
  return nobody;
}

/** Returns an account from the text of an `/etc/passwd` file; null if it is missing. */
export function parsePasswd(text: string, name: string): RunAs | null {
  const fields = text
    .split('\n')
    .map((line) => line.split(':'))
    .find((parts) => parts[0] === name);
  const [uid, gid] = [Number(fields?.[2]), Number(fields?.[3])];
  return Number.isInteger(uid) && Number.isInteger(gid) ? { uid, gid } : null;
}

/**
 * Whether `user` may traverse every folder down to `path`. Folders that do not exist yet are ignored: this
 * process creates them.
 */
export function isReachableBy(path: string, user: RunAs): boolean {
  for (let folder = resolve(path); ; folder = dirname(folder)) {
    if (existsSync(folder)) {
      const { mode, uid, gid } = statSync(folder);
      const bit = uid === user.uid ? 0o100 : gid === user.gid ? 0o010 : 0o001;
      if ((mode & bit) === 0) return false;
    }
    if (folder === dirname(folder)) return true;
  }
}

/**
 * Creates `folder` and its parents if missing, and gives it to `runAs`.
 * @throws {FriendlyError} if it exists and belongs to another user.
 */
export function makeOwnedFolder(folder: string, runAs: RunAs | null): void {
  const wanted = runAs?.uid ?? process.getuid?.();
  if (!existsSync(folder)) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (runAs) chownSync(folder, runAs.uid, runAs.gid);
    return;
  }
  const { uid } = lstatSync(folder);
  if (wanted !== undefined && uid !== wanted) {
    throw new FriendlyError(
      `${folder} belongs to user ${uid}, not to user ${wanted}: another user started an earlier run. ` +
        'Start as that user again, or remove the folder.',
    );
  }
}
