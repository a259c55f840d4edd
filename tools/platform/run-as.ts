import { chownSync, existsSync, lstatSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { FriendlyError } from './errors.ts';

/**
 * The unprivileged account that PostgreSQL and RabbitMQ run as when we are root: both refuse or should not
 * have root.
 */
export interface RunAs {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Who the servers run as: null when we are an ordinary user (then as ourselves), else the existing account
 * `nobody`.
 * @throws {FriendlyError} when we are root and the system has no `nobody`.
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

/** Looks an account up in the text of an `/etc/passwd` file. */
export function parsePasswd(text: string, name: string): RunAs | null {
  const fields = text
    .split('\n')
    .map((line) => line.split(':'))
    .find((parts) => parts[0] === name);
  const [uid, gid] = [Number(fields?.[2]), Number(fields?.[3])];
  return Number.isInteger(uid) && Number.isInteger(gid) ? { uid, gid } : null;
}

/**
 * True when `user` may walk through every folder down to `path` (those that do not exist yet are ours to
 * make).
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
 * Makes `folder` (and its parents) if need be and hands it to `runAs`.
 * @throws {FriendlyError} when it is there already and belongs to somebody else.
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
      `${folder} belongs to user ${uid}, not to user ${wanted}: an earlier run was started by somebody else. ` +
        'Start as that user again, or remove the folder.',
    );
  }
}
