import { createHash } from 'node:crypto';
import { containers, type KubernetesObject, workloads } from '../kubernetes-object.ts';
import type { ConfigMapGenerator } from './kustomization.ts';

interface ConfigMap extends KubernetesObject {
  data: Record<string, string>;
}

/** Which ConfigMaps were generated; those get a hash of their content at the end of their name. */
export class ConfigMaps {
  private readonly generated = new Set<string>();

  /** @returns the objects with the generated ConfigMap @throws {Error} unless it is new, or there for `merge` */
  generate(
    { name, behavior, literals }: ConfigMapGenerator,
    objects: KubernetesObject[],
  ): KubernetesObject[] {
    const data = readLiterals(name, literals);
    const existing = objects.find((object) => object.kind === 'ConfigMap' && object.metadata.name === name);
    if (behavior === 'merge') {
      if (existing === undefined || !this.generated.has(name))
        throw new Error(`configMapGenerator ${name}: nothing to merge with`);
      Object.assign((existing as ConfigMap).data, data);
      return objects;
    }
    if (existing !== undefined) throw new Error(`configMapGenerator ${name}: is there already`);
    this.generated.add(name);
    return [...objects, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data }];
  }

  /** Takes over what a kustomization among the resources has generated. */
  adopt(other: ConfigMaps): void {
    for (const name of other.generated) this.generated.add(name);
  }

  /** Gives the generated ConfigMaps their final names, and with them everything that refers to them. */
  addHashes(objects: KubernetesObject[]): KubernetesObject[] {
    const names = new Map<string, string>();
    for (const object of objects) {
      if (object.kind !== 'ConfigMap' || !this.generated.has(object.metadata.name)) continue;
      const { name } = object.metadata;
      object.metadata.name = `${name}-${hash((object as ConfigMap).data)}`;
      names.set(name, object.metadata.name);
    }
    rename(objects, names);
    return objects;
  }
}

function readLiterals(generator: string, literals: readonly string[]): Record<string, string> {
  const data: Record<string, string> = {};
  for (const literal of literals) {
    const equals = literal.indexOf('=');
    const key = literal.slice(0, equals);
    if (data[key] !== undefined) throw new Error(`configMapGenerator ${generator}: ${key} is there twice`);
    data[key] = literal.slice(equals + 1);
  }
  return data;
}

/** kustomize's: SHA-256 over the canonical JSON, without the name, ten digits, some of them replaced. */
function hash(data: Readonly<Record<string, string>>): string {
  const sorted = Object.fromEntries(Object.entries(data).sort(([a], [b]) => (a < b ? -1 : 1)));
  const text = escapeAsGo(JSON.stringify({ data: sorted, kind: 'ConfigMap', name: '' }));
  const replaced: Readonly<Record<string, string>> = { '0': 'g', '1': 'h', '3': 'k', a: 'm', e: 't' };
  const digits = createHash('sha256').update(text).digest('hex').slice(0, 10);
  return [...digits].map((digit) => replaced[digit] ?? digit).join('');
}

/** Go's JSON escapes what could end a script element in HTML. */
function escapeAsGo(json: string): string {
  return json.replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function rename(objects: readonly KubernetesObject[], names: ReadonlyMap<string, string>): void {
  for (const { pod } of workloads(objects)) {
    const volumes = (pod.volumes ?? []) as { configMap?: { name: string } }[];
    const references = [
      ...volumes.map(({ configMap }) => configMap),
      ...containers(pod).flatMap(({ envFrom = [] }) => envFrom.map(({ configMapRef }) => configMapRef)),
      ...containers(pod).flatMap(({ env = [] }) => env.map(({ valueFrom }) => valueFrom?.configMapKeyRef)),
    ];
    for (const reference of references) {
      if (reference !== undefined) reference.name = names.get(reference.name) ?? reference.name;
    }
  }
}
