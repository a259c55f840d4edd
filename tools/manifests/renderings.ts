import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { ensureKubectl, kustomize } from './kubectl.ts';
import type { KubernetesObject, Value } from './kubernetes-object.ts';

/** A folder that somebody would apply, and what it renders to. */
export interface Rendering {
  readonly folder: string;
  readonly objects: KubernetesObject[];
}

/** Relative to the workspace: everything at once, also the components that no overlay uses. */
export const EVERYTHING = 'tools/manifests/fixtures/every-component';

/** What `kubectl kustomize` makes of one folder. */
export function render(workspace: string, folder: string): KubernetesObject[] {
  const printed = kustomize(ensureKubectl(workspace), resolve(workspace, folder));
  return parseYaml(printed, folder) as unknown as KubernetesObject[];
}

/** Renders every overlay and the fixture with all components; kept as long as no manifest changes, because many tests ask for it. */
export function renderAll(workspace: string): Rendering[] {
  const file = join(workspace, `node_modules/.cache/manifests/${hashOfManifests(workspace)}.json`);
  if (existsSync(file)) return JSON.parse(readFileSync(file, 'utf8')) as Rendering[];
  const overlays = globSync('k8s/overlays/**/kustomization.yaml', { cwd: workspace })
    .filter((path) => readFileSync(join(workspace, path), 'utf8').includes('kind: Kustomization'))
    .map((path) => dirname(path));
  const renderings = [...overlays.sort(), EVERYTHING].map((folder) => ({
    folder,
    objects: render(workspace, folder),
  }));
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(`${file}.${String(process.pid)}`, JSON.stringify(renderings));
  renameSync(`${file}.${String(process.pid)}`, file);
  return renderings;
}

function hashOfManifests(workspace: string): string {
  const hash = createHash('sha256');
  const files = globSync(['k8s/**/*', 'observability/**/*', `${EVERYTHING}/*`], {
    cwd: workspace,
    withFileTypes: true,
  })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  for (const path of files.sort())
    hash.update(relative(workspace, path)).update('\0').update(readFileSync(path)).update('\0');
  return hash.digest('hex');
}

/**
 * The documents of a YAML text.
 * @param source where it comes from, for the message
 * @throws {Error} on anything that is no strict YAML: duplicated keys, unknown tags, aliases, warnings of the parser
 */
function parseYaml(text: string, source: string): Value[] {
  const documents = parseAllDocuments(text, { uniqueKeys: true, version: '1.2' });
  if (!Array.isArray(documents)) return [];
  return documents.map((document) => {
    const [problem] = [...document.errors, ...document.warnings];
    if (problem !== undefined) throw new Error(`${source}: ${problem.message}`);
    return document.toJS({ maxAliasCount: 0 }) as Value;
  });
}
