import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { KubernetesObject, Value } from '../kubernetes-object.ts';
import { readYaml } from '../yaml-documents.ts';
import { ConfigMaps } from './config-maps.ts';
import { type Kustomization, kustomizationSchema } from './kustomization.ts';
import { applyPatch } from './patches.ts';
import { setImages, setLabels, setNamespace } from './transformers.ts';

/**
 * Renders a kustomization as `kubectl kustomize` does, for the part of kustomize that `kustomizationSchema` names.
 * The order of the objects is the order of reading, not kustomize's.
 * @param folder holds a `kustomization.yaml`
 * @throws {Error} for whatever is unknown, missing or twice there
 */
export function render(folder: string): KubernetesObject[] {
  const rendering = new Rendering();
  rendering.accumulate(folder, 'Kustomization');
  return rendering.finish();
}

class Rendering {
  private objects: KubernetesObject[] = [];
  private readonly configMaps = new ConfigMaps();

  /** Resources, components, generators, then transformers: kustomize's own order. */
  accumulate(folder: string, expected: Kustomization['kind']): void {
    const kustomization = readKustomization(folder, expected);
    for (const resource of kustomization.resources) this.addResource(join(folder, resource));
    for (const component of kustomization.components) this.accumulate(join(folder, component), 'Component');
    for (const generator of kustomization.configMapGenerator) {
      this.objects = this.configMaps.generate(generator, this.objects, folder);
    }
    this.transform(kustomization, folder);
  }

  finish(): KubernetesObject[] {
    return this.configMaps.addHashes(this.objects);
  }

  private addResource(path: string): void {
    if (!existsSync(path)) throw new Error(`${path}: there is no such file or folder`);
    if (statSync(path).isDirectory()) {
      const inner = new Rendering();
      inner.accumulate(path, 'Kustomization');
      for (const object of inner.objects) this.addObject(object, path);
      this.configMaps.adopt(inner.configMaps);
      return;
    }
    for (const document of readYaml(path)) this.addObject(asObject(document, path), path);
  }

  private addObject(object: KubernetesObject, source: string): void {
    if (this.objects.some((other) => isSame(other, object)))
      throw new Error(`${source}: ${object.kind} ${object.metadata.name} is there already`);
    this.objects.push(object);
  }

  private transform({ patches, namespace, labels, images }: Kustomization, folder: string): void {
    for (const patch of patches) applyPatch(patch, this.objects, folder);
    if (namespace !== undefined) setNamespace(this.objects, namespace);
    for (const { pairs } of labels) setLabels(this.objects, pairs);
    for (const image of images) setImages(this.objects, image);
  }
}

function readKustomization(folder: string, expected: Kustomization['kind']): Kustomization {
  const file = join(folder, 'kustomization.yaml');
  const [document, ...others] = readYaml(file);
  if (others.length > 0) throw new Error(`${file}: more than one document`);
  const parsed = kustomizationSchema.safeParse(document);
  if (!parsed.success) {
    const problems = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
    throw new Error(`${file}: ${problems.join('; ')}`);
  }
  if (parsed.data.kind !== expected) throw new Error(`${file}: must be a ${expected}`);
  return parsed.data;
}

function asObject(document: Value, source: string): KubernetesObject {
  const object = document as Partial<KubernetesObject> | null;
  if (typeof object?.apiVersion !== 'string' || typeof object.kind !== 'string')
    throw new Error(`${source}: apiVersion and kind are needed`);
  if (typeof object.metadata?.name !== 'string') throw new Error(`${source}: metadata.name is needed`);
  return object as KubernetesObject;
}

function isSame(left: KubernetesObject, right: KubernetesObject): boolean {
  return (
    left.apiVersion === right.apiVersion &&
    left.kind === right.kind &&
    left.metadata.name === right.metadata.name
  );
}
