import { join } from 'node:path';
import { SecretFile } from '#platform/secrets.ts';
import type { Supervisor } from '#platform/supervisor.ts';
import type { StartArguments } from './arguments.ts';
import type { ExternalServers } from './external-servers.ts';
import type { Progress } from './progress.ts';

/** What every step of a start works with. */
export interface StartContext {
  readonly workspace: string;
  readonly stateFolder: string;
  readonly args: StartArguments;
  readonly external: ExternalServers;
  readonly supervisor: Supervisor;
  readonly progress: Progress;
  /** The secrets in the file `file` of the state folder. */
  readonly secrets: (file: string) => SecretFile;
}

/** Secrets of the private servers, and of the services on them. */
export const PRIVATE_SECRETS = 'secrets.json';

/** One `SecretFile` per file: two would overwrite each other's new secrets. */
export function openSecrets(stateFolder: string): (file: string) => SecretFile {
  const files = new Map<string, SecretFile>();
  return (file) => {
    const secrets = files.get(file) ?? new SecretFile(join(stateFolder, file));
    files.set(file, secrets);
    return secrets;
  };
}
