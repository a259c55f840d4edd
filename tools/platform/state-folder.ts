import { createHash, randomBytes } from 'node:crypto';
import { existsSync, lstatSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FriendlyError, isErrorCode } from './errors.ts';
import { findRunAs, isReachableBy } from './run-as.ts';

export const WORKSPACE = join(import.meta.dirname, '../..');

/**
 * Node's compile cache of the bundles: with it, as in the images, a program starts in three quarters of the
 * processor time.
 */
export const COMPILE_CACHE = join(WORKSPACE, 'dist/.compiled');

/** Environment variables by name. */
export type Variables = Readonly<Record<string, string>>;

/**
 * Returns the folder of a checkout's data, logs and secrets: `.platform` in the checkout or, if the account
 * that runs the servers cannot reach it (root's checkout under /root), a folder under /var/tmp.
 */
export function stateFolderFor(checkout: string, isReachable: (path: string) => boolean): string {
  const inside = join(checkout, '.platform');
  if (isReachable(inside)) return inside;
  const key = createHash('sha256').update(checkout).digest('hex').slice(0, 12);
  return `/var/tmp/property-platform-${key}`;
}

/**
 * Returns the state folder of this checkout, which it creates if missing.
 * @throws {FriendlyError} if it belongs to another user (any user may create folders under /var/tmp).
 */
export function openStateFolder(checkout: string): string {
  const runAs = findRunAs();
  const folder = stateFolderFor(checkout, (path) => runAs === null || isReachableBy(path, runAs));
  if (!existsSync(folder)) mkdirSync(folder, { mode: 0o755 });
  const status = lstatSync(folder);
  if (!status.isDirectory() || (process.getuid && status.uid !== process.getuid())) {
    throw new FriendlyError(
      `${folder} belongs to user ${status.uid}: another user started this platform before. ` +
        'Start it as that user again, or remove the folder.',
    );
  }
  return folder;
}

/** Returns the folder of downloaded and unpacked servers, which all runs of this checkout share. */
export function cacheFolder(): string {
  return join(openStateFolder(WORKSPACE), 'cache');
}

/**
 * Random secrets by name, created at first use and kept in one file that only its owner can read, so that a
 * second start opens the same databases and accepts the same tokens.
 */
export class SecretFile {
  readonly #file: string;
  readonly #values: Record<string, string>;

  constructor(file: string) {
    this.#file = file;
    this.#values = { ...readVariables(file) };
  }

  /** Returns the secret `name`: 32 random bytes as base64url, created unless the file has it. */
  get(name: string): string {
    const known = this.#values[name];
    if (known !== undefined) return known;
    const value = randomBytes(32).toString('base64url');
    this.#values[name] = value;
    saveVariables(this.#file, this.#values);
    return value;
  }

  /** Returns all secrets created so far, by name. */
  entries(): [name: string, value: string][] {
    return Object.entries(this.#values);
  }
}

/** Saves the environment with which a service runs and is migrated. */
export function saveServiceEnvironment(stateFolder: string, service: string, environment: Variables): void {
  saveVariables(join(stateFolder, `${service}-environment.json`), environment);
}

/** Returns the environment that the last start of this state folder saved; null before the first start. */
export function readServiceEnvironment(stateFolder: string, service: string): Variables | null {
  return readVariables(join(stateFolder, `${service}-environment.json`));
}

const ADDRESSES = 'addresses.json';

/** Saves the URLs of the platform that has just become ready: AUTH_URL, … */
export function saveRunningAddresses(stateFolder: string, addresses: Variables): void {
  saveVariables(join(stateFolder, ADDRESSES), addresses, 0o644);
}

/** Returns the URLs of the last platform of this state folder; empty if none was ever ready. */
export function readRunningAddresses(stateFolder: string): Variables {
  return readVariables(join(stateFolder, ADDRESSES)) ?? {};
}

/** @param mode by default only the owner may read: the variables include passwords and keys */
function saveVariables(file: string, variables: Variables, mode = 0o600): void {
  // An existing file would keep its own permissions.
  rmSync(`${file}.next`, { force: true });
  writeFileSync(`${file}.next`, `${JSON.stringify(variables, null, 2)}\n`, { mode });
  renameSync(`${file}.next`, file);
}

function readVariables(file: string): Variables | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Variables;
  } catch (error) {
    if (isErrorCode(error, 'ENOENT')) return null;
    throw error;
  }
}
