import { randomBytes } from 'node:crypto';
import type { KubernetesObject } from '#manifests/kubernetes-object.ts';
import { SERVICE_NAMES, type ServiceName } from '#platform/programs.ts';
import type { Stage } from './servers.ts';

interface ExternalSecretSpec {
  readonly target: { readonly name: string };
  readonly data: readonly {
    readonly secretKey: string;
    readonly remoteRef: { readonly key: string; readonly property: string };
  }[];
}

/**
 * The secrets that External Secrets would make of a store, by `<secret>/<key>`: what the manifests take from one place is one value.
 * @param prepared the objects of the `prepare` step
 */
export function secretsOf(prepared: readonly KubernetesObject[], stage: Stage): Map<string, string> {
  const store = new Map<string, string>();
  const values = new Map<string, string>();
  for (const { kind, spec } of prepared) {
    if (kind !== 'ExternalSecret') continue;
    const { target, data } = spec as ExternalSecretSpec;
    for (const { secretKey, remoteRef } of data) {
      const place = `${remoteRef.key}/${remoteRef.property}`;
      const value = store.get(place) ?? valueFor(remoteRef, stage);
      store.set(place, value);
      values.set(`${target.name}/${secretKey}`, value);
    }
  }
  return values;
}

function valueFor(
  { key, property }: { key: string; property: string },
  { databases, busUrl }: Stage,
): string {
  const service: ServiceName = SERVICE_NAMES.find((name) => key.endsWith(`${name}-service`)) ?? 'auth';
  if (property === 'DATABASE_URL') return databases[service].app;
  if (property === 'MIGRATION_DATABASE_URL') return databases[service].owner;
  return property.startsWith('RABBITMQ_') ? busUrl : randomKey();
}

/** As k8s/README.md says: 32 random bytes in base64url. */
export function randomKey(): string {
  return randomBytes(32).toString('base64url');
}
