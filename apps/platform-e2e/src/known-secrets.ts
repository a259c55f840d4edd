import type { PlatformFacts } from './environments';
import { MIN_SECRET_LENGTH } from '@platform/testing';

/** Of the development identities. Source: the README. */
const DEVELOPMENT_SECRETS: readonly [value: string, kind: string][] = [
  ['Demo-Passw0rd!', 'development password'],
  ['demo-backend-secret-for-local-use-only-000001', 'shared secret of demo-backend'],
  ['demo-reports-secret-for-local-use-only-000002', 'shared secret of demo-reports'],
];

/** The secrets that a platform is configured with: kinds by value. */
export function knownSecrets(facts: PlatformFacts): ReadonlyMap<string, string> {
  const found = new Map(DEVELOPMENT_SECRETS);
  const configured: [name: string, value: string][] = Object.entries(facts.secrets);
  for (const [name, value] of configured) found.set(value, name);
  const urls = Object.values(facts.databases).flatMap(({ url, ownerUrl }) => [url, ownerUrl]);
  for (const url of [...urls, facts.mainBusUrl, facts.schedulingBusUrl]) {
    const password = decodeURIComponent(new URL(url).password);
    // The test servers' own accounts: `postgres` and `guest` are names of products as well.
    if (password.length >= MIN_SECRET_LENGTH && password !== 'postgres')
      found.set(password, 'server password');
  }
  return found;
}
