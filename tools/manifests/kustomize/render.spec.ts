import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { findKubectl, kubectlKustomize } from '../kubectl.ts';
import { title } from '../kubernetes-object.ts';
import type { KubernetesObject } from '../kubernetes-object.ts';
import { renderAll } from '../renderings.ts';
import { parseYaml } from '../yaml-documents.ts';
import { render } from './render.ts';

// It starts other processes.
jest.setTimeout(60_000);

const WORKSPACE = join(__dirname, '../../..');
const kubectl = findKubectl(WORKSPACE);
if (kubectl === null)
  process.stderr.write(
    'There is no kubectl with kustomize 5 (.ci/install-kubectl brings one): its tests are skipped\n',
  );
const withKubectl = kubectl === null ? describe.skip : describe;

const KUSTOMIZATION = 'apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n';
const CONFIG_MAP = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: plain\ndata:\n  A: "1"\n';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kustomization-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(files: Record<string, string>): string {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

function renderingOf(kustomization: string, files: Record<string, string> = {}): () => KubernetesObject[] {
  write({ 'kustomization.yaml': KUSTOMIZATION + kustomization, 'map.yaml': CONFIG_MAP, ...files });
  return () => render(folder);
}

function sorted(objects: readonly KubernetesObject[]): KubernetesObject[] {
  return [...objects].sort((a, b) => (title(a) < title(b) ? -1 : 1));
}

withKubectl('rendering, beside kubectl', () => {
  it.each(renderAll(WORKSPACE))('gives the same for $folder', ({ folder: overlay, objects }) => {
    const printed = kubectlKustomize(kubectl ?? '', join(WORKSPACE, overlay));
    expect(sorted(objects)).toEqual(sorted(parseYaml(printed, 'kubectl') as unknown as KubernetesObject[]));
  });

  it('gives the same hash for characters that Go escapes', () => {
    const literal = "configMapGenerator:\n  - name: c\n    literals: ['A=<b> & \\u2028 ü', 'AB=', 'B=x=y']\n";
    const [map] = renderingOf(literal)();
    expect(kubectlKustomize(kubectl ?? '', folder)).toContain(`name: ${map?.metadata.name}\n`);
  });
});

describe('rendering refuses', () => {
  it.each([
    ['a field of kustomize that it does not know', 'namePrefix: x-\n', /Unrecognized key: "namePrefix"/],
    ['what is no field at all', 'resorces: [map.yaml]\n', /Unrecognized key: "resorces"/],
    ['remote resources', 'resources: ["https://example.com/x.yaml"]\n', /must be a path, nothing remote/],
    ['files that are not there', 'resources: [gone.yaml]\n', /there is no such file or folder/],
    ['one object twice', 'resources: [map.yaml, map.yaml]\n', /plain is there already/],
    ['a key twice', 'resources: [map.yaml]\nresources: []\n', /Map keys must be unique/],
    [
      'merging into a ConfigMap that is not there',
      'configMapGenerator: [{ name: c, behavior: merge }]\n',
      /nothing to merge with/,
    ],
    ['a literal twice', 'configMapGenerator: [{ name: c, literals: [A=1, A=2] }]\n', /A is there twice/],
    [
      'a patch for an object that is not there',
      'resources: [map.yaml]\npatches: [{ target: { kind: ConfigMap, name: gone }, patch: "[]" }]\n',
      /there is no ConfigMap gone/,
    ],
    [
      'a patch of a path that is not there',
      'resources: [map.yaml]\npatches: [{ target: { kind: ConfigMap }, patch: "[{op: replace, path: /data/B, value: x}]" }]\n',
      /there is nothing to change/,
    ],
    [
      'an unknown operation',
      'resources: [map.yaml]\npatches: [{ target: { kind: ConfigMap }, patch: "[{op: move, path: /data/B, from: /data/A}]" }]\n',
      /Invalid discriminator value/,
    ],
    [
      'directives in a patch',
      'resources: [map.yaml]\npatches: [{ patch: "{kind: ConfigMap, metadata: {name: plain}, $patch: delete}" }]\n',
      /\$patch is not supported/,
    ],
    [
      'lists that it cannot merge',
      'resources: [map.yaml]\npatches: [{ patch: "{kind: ConfigMap, metadata: {name: plain}, spec: {ports: [{port: 1}]}}" }]\n',
      /do not know how to merge the list ports/,
    ],
  ])('%s', (_, kustomization, message) => {
    expect(renderingOf(kustomization)).toThrow(message);
  });

  it('a namespace that kustomize would rename', () => {
    const namespace = 'apiVersion: v1\nkind: Namespace\nmetadata:\n  name: other\n';
    const rendering = renderingOf('namespace: mine\nresources: [n.yaml]\n', { 'n.yaml': namespace });
    expect(rendering).toThrow('Namespace other in a kustomization for mine');
  });

  it('a component among the resources', () => {
    const component = 'apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n';
    const rendering = renderingOf('resources: [c]\n', { 'c/kustomization.yaml': component });
    expect(rendering).toThrow('must be a Kustomization');
  });

  it('aliases, and an object without a name', () => {
    expect(renderingOf('resources: [a.yaml]\n', { 'a.yaml': 'a: &x 1\nb: *x\n' })).toThrow(/alias/i);
    expect(renderingOf('resources: [a.yaml]\n', { 'a.yaml': 'apiVersion: v1\nkind: Service\n' })).toThrow(
      'metadata.name is needed',
    );
  });
});
