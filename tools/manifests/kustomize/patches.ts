import type { Fields, KubernetesObject, Value } from '../kubernetes-object.ts';
import { parseYaml } from '../yaml-documents.ts';
import { applyOperations } from './json-patch.ts';
import type { Patch } from './kustomization.ts';
import { mergeFields } from './strategic-merge.ts';

/**
 * Applies one patch: a list is a JSON patch (RFC 6902), an object a strategic merge patch.
 * @throws {Error} when a patch that names its object finds none; one for a kind may find none, as a component cannot know
 */
export function applyPatch(patch: Patch, objects: readonly KubernetesObject[], folder: string): void {
  const source = `a patch in ${folder}`;
  const [content] = parseYaml(patch.patch, source);
  const target = patch.target ?? ownTarget(content, source);
  const targets = objects.filter(
    ({ kind, metadata }) => kind === target.kind && (target.name ?? metadata.name) === metadata.name,
  );
  if (targets.length === 0 && target.name !== undefined)
    throw new Error(`${source}: there is no ${target.kind} ${target.name}`);
  for (const object of targets) {
    if (Array.isArray(content)) applyOperations(object as unknown as Fields, content, source);
    else mergeFields(object as unknown as Fields, withoutIdentity(content as Fields), source);
  }
}

function ownTarget(content: Value | undefined, source: string): { kind: string; name: string | undefined } {
  const object = content as Partial<KubernetesObject> | null | undefined;
  if (Array.isArray(content) || typeof object?.kind !== 'string' || typeof object.metadata?.name !== 'string')
    throw new Error(`${source}: without a target it must name its object`);
  return { kind: object.kind, name: object.metadata.name };
}

function withoutIdentity({ apiVersion, kind, metadata, ...rest }: Fields): Fields {
  const { name, ...other } = (metadata ?? {}) as Fields;
  return Object.keys(other).length > 0 ? { ...rest, metadata: other } : rest;
}
