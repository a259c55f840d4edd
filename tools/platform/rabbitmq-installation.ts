import { accessSync, constants, existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { isErrorCode } from './process-identity.ts';

/** A RabbitMQ on this machine that a private node can be started from. */
export interface RabbitmqInstallation {
  /** Said to the user: where it comes from. */
  readonly origin: string;
  /** RABBITMQ_HOME, or null when the server's script knows it. */
  readonly home: string | null;
  readonly server: string;
  readonly epmd: string;
  /** Folders to put before PATH, and for the dynamic linker. */
  readonly binFolders: readonly string[];
  readonly libraryFolders: readonly string[];
}

/** The RabbitMQ that the system has installed, or null. */
export function findInstalledRabbitmq(): RabbitmqInstallation | null {
  const epmd = findOnPath('epmd') ?? findEpmdOfErlang('/usr/lib/erlang');
  if (epmd === null) return null;
  // Debian's /usr/sbin/rabbitmq-server insists on root or the user rabbitmq: take the script behind it.
  const home = findRabbitmqHome('/usr/lib/rabbitmq/lib');
  const server = home === null ? findOnPath('rabbitmq-server') : join(home, 'sbin/rabbitmq-server');
  if (server === null) return null;
  return { origin: 'installed on this machine', home, server, epmd, binFolders: [], libraryFolders: [] };
}

/** The `rabbitmq_server-*` folder under `parent`, or null. */
export function findRabbitmqHome(parent: string): string | null {
  const name = listFolder(parent).find((entry) => entry.startsWith('rabbitmq_server-'));
  return name === undefined ? null : join(parent, name);
}

/** `epmd` of an Erlang under `root`, or null. */
export function findEpmdOfErlang(root: string): string | null {
  const runtime = listFolder(root).find((entry) => entry.startsWith('erts-'));
  const epmd = runtime === undefined ? null : join(root, runtime, 'bin/epmd');
  return epmd !== null && existsSync(epmd) ? epmd : null;
}

/** The full path of a program on PATH, or null. */
export function findOnPath(program: string): string | null {
  const candidates = (process.env['PATH'] ?? '').split(delimiter).map((folder) => join(folder, program));
  return candidates.find(isExecutable) ?? null;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch (error) {
    if (isErrorCode(error, 'ENOENT', 'EACCES', 'ENOTDIR')) return false;
    throw error;
  }
}

function listFolder(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (isErrorCode(error, 'ENOENT', 'EACCES')) return [];
    throw error;
  }
}
