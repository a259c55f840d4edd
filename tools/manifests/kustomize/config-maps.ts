import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { containers, type KubernetesObject, workloads } from '../kubernetes-object.ts';
import type { ConfigMapGenerator } from './kustomization.ts';

interface ConfigMap extends KubernetesObject {
  data: Record<string, string>;
}

/** Which ConfigMaps were generated, and whether a hash of their content comes at the end of their name. */
export class ConfigMaps {
  private readonly generated = new Map<string, { isHashed: boolean }>();

  /**
   * @param folder where the generator stands, and its files
   * @returns the objects with the generated ConfigMap @throws {Error} unless it is new, or there for `merge`
   */
  generate(generator: ConfigMapGenerator, objects: KubernetesObject[], folder: string): KubernetesObject[] {
    const { name, behavior, options } = generator;
    const data = readData(generator, folder);
    const existing = objects.find((object) => object.kind === 'ConfigMap' && object.metadata.name === name);
    if (behavior === 'merge') {
      if (existing === undefined || !this.generated.has(name))
        throw new Error(`configMapGenerator ${name}: nothing to merge with`);
      Object.assign((existing as ConfigMap).data, data);
      return objects;
    }
    if (existing !== undefined) throw new Error(`configMapGenerator ${name}: is there already`);
    this.generated.set(name, { isHashed: options?.disableNameSuffixHash !== true });
    const metadata = { name, ...(options?.labels === undefined ? {} : { labels: { ...options.labels } }) };
    return [...objects, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data }];
  }

  /** Takes over what a kustomization among the resources has generated. */
  adopt(other: ConfigMaps): void {
    for (const [name, how] of other.generated) this.generated.set(name, how);
  }

  /** Gives the generated ConfigMaps their final names, and with them everything that refers to them. */
  addHashes(objects: KubernetesObject[]): KubernetesObject[] {
    const names = new Map<string, string>();
    for (const object of objects) {
      if (object.kind !== 'ConfigMap' || this.generated.get(object.metadata.name)?.isHashed !== true)
        continue;
      const { name } = object.metadata;
      object.metadata.name = `${name}-${hash((object as ConfigMap).data)}`;
      names.set(name, object.metadata.name);
    }
    rename(objects, names);
    return objects;
  }
}

function readData({ name, literals, files }: ConfigMapGenerator, folder: string): Record<string, string> {
  const data: Record<string, string> = {};
  const add = (key: string, value: string): void => {
    if (data[key] !== undefined) throw new Error(`configMapGenerator ${name}: ${key} is there twice`);
    data[key] = value;
  };
  for (const literal of literals) {
    const equals = literal.indexOf('=');
    add(literal.slice(0, equals), literal.slice(equals + 1));
  }
  for (const file of files) add(basename(file), readFileSync(join(folder, file), 'utf8'));
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
