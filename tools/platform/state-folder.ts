import { createHash, randomBytes } from 'node:crypto';
import { existsSync, lstatSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FriendlyError, isErrorCode } from './errors.ts';
import { findRunAs, isReachableBy } from './run-as.ts';

export const WORKSPACE = join(import.meta.dirname, '../..');

/**
 * Where Node keeps what it compiled of the bundles: as in the images, a program then starts in three quarters
 * of the processor time.
 */
export const COMPILE_CACHE = join(WORKSPACE, 'dist/.compiled');

/** Environment variables by name. */
export type Variables = Readonly<Record<string, string>>;

/**
 * Where the platform of a checkout keeps its data, logs and secrets: `.platform` in the checkout, or, when
 * the account that runs the servers cannot get there (a root's checkout under /root), a folder of its own
 * under /var/tmp.
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

/** Where servers that were downloaded or unpacked once are kept for every later run of this checkout. */
export function cacheFolder(): string {
  return join(openStateFolder(WORKSPACE), 'cache');
}

/**
 * Random secrets by name, made when first asked for and kept in one file that only its owner can read, so
 * that a second start opens the same databases and accepts the same tokens.
 */
export class SecretFile {
  readonly #file: string;
  readonly #values: Record<string, string>;

  constructor(file: string) {
    this.#file = file;
    this.#values = { ...readVariables(file) };
  }

  /** The secret called `name`: 32 random bytes as base64url, or as this file has it. */
  get(name: string): string {
    const known = this.#values[name];
    if (known !== undefined) return known;
    const value = randomBytes(32).toString('base64url');
    this.#values[name] = value;
    saveVariables(this.#file, this.#values);
    return value;
  }

  /** Every secret made so far, by name. */
  entries(): [name: string, value: string][] {
    return Object.entries(this.#values);
  }
}

/** Notes with which environment a service runs and is migrated. */
export function saveServiceEnvironment(stateFolder: string, service: string, environment: Variables): void {
  saveVariables(join(stateFolder, `${service}-environment.json`), environment);
}

/** What the last start of this state folder noted, or null when there was none. */
export function readServiceEnvironment(stateFolder: string, service: string): Variables | null {
  return readVariables(join(stateFolder, `${service}-environment.json`));
}

const ADDRESSES = 'addresses.json';

/** Notes in the state folder where the platform that has just become ready answers: AUTH_URL, … */
export function saveRunningAddresses(stateFolder: string, addresses: Variables): void {
  saveVariables(join(stateFolder, ADDRESSES), addresses, 0o644);
}

/** Where the last platform of this state folder answered; empty when none was ever ready. */
export function readRunningAddresses(stateFolder: string): Variables {
  return readVariables(join(stateFolder, ADDRESSES)) ?? {};
}

/** @param mode by default for the file's owner only: there may be passwords and keys among them */
function saveVariables(file: string, variables: Variables, mode = 0o600): void {
  // A leftover would keep its own permissions.
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
