import { CLUSTER_KINDS, containers, type KubernetesObject, workloads } from '../kubernetes-object.ts';
import type { Image } from './kustomization.ts';

/** Puts every object into the namespace. @throws {Error} for a Namespace of another name, which kustomize would rename */
export function setNamespace(objects: readonly KubernetesObject[], namespace: string): void {
  for (const object of objects) {
    if (!CLUSTER_KINDS.has(object.kind)) object.metadata.namespace = namespace;
    else if (object.kind === 'Namespace' && object.metadata.name !== namespace)
      throw new Error(`Namespace ${object.metadata.name} in a kustomization for ${namespace}`);
  }
}

/** Adds labels to the objects, not to selectors and templates. */
export function setLabels(
  objects: readonly KubernetesObject[],
  pairs: Readonly<Record<string, string>>,
): void {
  for (const { metadata } of objects) metadata.labels = { ...metadata.labels, ...pairs };
}

/** Names, tags or digests for the containers' images. */
export function setImages(
  objects: readonly KubernetesObject[],
  { name, newName, newTag, digest }: Image,
): void {
  for (const { pod } of workloads(objects)) {
    for (const container of containers(pod) as { image: string }[]) {
      const { repository, suffix } = splitImage(container.image);
      if (repository !== name) continue;
      const version = digest === undefined ? (newTag === undefined ? suffix : `:${newTag}`) : `@${digest}`;
      container.image = `${newName ?? repository}${version}`;
    }
  }
}

/** `registry:5000/app:1` → `registry:5000/app` and `:1`. */
export function splitImage(image: string): { repository: string; suffix: string } {
  const at = image.indexOf('@');
  if (at !== -1) return { repository: image.slice(0, at), suffix: image.slice(at) };
  const colon = image.lastIndexOf(':');
  if (colon <= image.lastIndexOf('/')) return { repository: image, suffix: '' };
  return { repository: image.slice(0, colon), suffix: image.slice(colon) };
}
