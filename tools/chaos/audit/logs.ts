import { readFileSync } from 'node:fs';
import type { Cluster } from '../cluster.ts';
import type { Journal } from '../load/journal.ts';
import { CheckBuilder, type Check } from './check.ts';

const MIN_SECRET_LENGTH = 16;

/** No log of any process of the services has a secret of the run in it: keys, passwords, tokens, values of settings. */
export function auditLogs(cluster: Cluster, journal: Journal): Check {
  const check = new CheckBuilder('logs: no secret');
  const secrets = new Map<string, string>([
    ['demo-backend-secret-for-local-use-only-000001', 'shared secret of demo-backend'],
  ]);
  const configured = [...cluster.servers.place.secrets.entries(), ...cluster.platform.secrets.entries()];
  for (const [name, value] of configured) secrets.set(value, name);
  // A token is known by its signature.
  for (const { token } of journal.revokedTokens) secrets.set(token.split('.')[2] ?? token, 'access token');
  for (const { id } of journal.settings.slice(-500)) secrets.set(id, 'value of a setting');
  const files = cluster.replicas.flatMap(({ program }) => program.logFiles);
  for (const file of files) {
    const text = readFileSync(file, 'utf8');
    for (const [secret, kind] of secrets)
      if (secret.length >= MIN_SECRET_LENGTH && text.includes(secret)) check.wrong(`${file}: ${kind}`);
  }
  return check.done(secrets.size, files.length);
}
