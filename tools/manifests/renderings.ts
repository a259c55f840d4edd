import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import type { KubernetesObject } from './kubernetes-object.ts';
import { render } from './kustomize/render.ts';

/** A folder that somebody would apply, and what it renders to. */
export interface Rendering {
  readonly folder: string;
  readonly objects: KubernetesObject[];
}

/** Relative to the workspace: everything at once, also the components that no overlay uses. */
export const EVERYTHING = 'tools/manifests/fixtures/every-component';

/** Renders every overlay and the fixture with all components. */
export function renderAll(workspace: string): Rendering[] {
  const overlays = readdirSync(join(workspace, 'k8s/overlays'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('kustomization.yaml'))
    .map((path) => join(workspace, 'k8s/overlays', path))
    .filter((file) => readFileSync(file, 'utf8').includes('kind: Kustomization'))
    .map((file) => relative(workspace, dirname(file)));
  return [...overlays.sort(), EVERYTHING].map((folder) => ({
    folder,
    objects: render(join(workspace, folder)),
  }));
}
