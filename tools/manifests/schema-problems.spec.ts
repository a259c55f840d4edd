import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import type { Fields, KubernetesObject } from './kubernetes-object.ts';
import { EVERYTHING, renderAll } from './renderings.ts';

// It starts another process.
jest.setTimeout(60_000);

const WORKSPACE = join(__dirname, '../..');
const RENDERINGS = renderAll(WORKSPACE);

/** In a process of its own: the validators are ES modules. */
function problemsOf(objects: readonly KubernetesObject[]): string[] {
  const output = execFileSync(process.execPath, [join(__dirname, 'main.ts'), '--schemas-of', '-'], {
    input: JSON.stringify(objects),
    encoding: 'utf8',
  });
  return JSON.parse(output) as string[];
}

function changed(kind: string, change: (fields: Fields) => void): KubernetesObject {
  const all = RENDERINGS.find(({ folder }) => folder === EVERYTHING)?.objects ?? [];
  const object = structuredClone(all.find((each) => each.kind === kind));
  if (object === undefined) throw new Error(`there is no ${kind}`);
  change(object as unknown as Fields);
  return object;
}

function at(fields: Fields, path: string): Fields {
  return path.split('.').reduce<Fields>((value, key) => value[key] as Fields, fields);
}

const POD = 'spec.template.spec';
const CONTAINER = `${POD}.containers.0`;

const FAULTS: readonly [what: string, kind: string, change: (fields: Fields) => void, says: string][] = [
  ['a field at the top', 'Deployment', (f) => (f.specs = {}), 'unknown field /specs'],
  [
    'a field of the metadata',
    'Service',
    (f) => (at(f, 'metadata').label = {}),
    'unknown field /metadata/label',
  ],
  [
    'a field of the pod',
    'Deployment',
    (f) => (at(f, POD).automountToken = false),
    `unknown field /${POD.replaceAll('.', '/')}/automountToken`,
  ],
  ['a field of an operator', 'Pooler', (f) => (at(f, 'spec.pgbouncer').mode = ''), '"mode"'],
  ['a value of an operator', 'Cluster', (f) => (at(f, 'spec').instances = '3'), '/spec/instances'],
  ['a field of the container', 'Job', (f) => (at(f, CONTAINER).readOnly = true), 'unknown field'],
  [
    'a field inside a probe',
    'Deployment',
    (f) => (at(f, `${CONTAINER}.livenessProbe.httpGet`).url = '/'),
    'unknown field',
  ],
  [
    'a field of a suspended job',
    'CronJob',
    (f) => (at(f, 'spec.jobTemplate.spec').restartPolicy = 'Never'),
    'unknown field',
  ],
  ['a field of a policy', 'NetworkPolicy', (f) => (at(f, 'spec').podSelectors = {}), 'unknown field'],
  ['a field of a budget', 'PodDisruptionBudget', (f) => (at(f, 'spec').minimum = 1), 'unknown field'],
  [
    'a field of an autoscaler',
    'HorizontalPodAutoscaler',
    (f) => (at(f, 'spec').targetCPU = 1),
    'unknown field',
  ],
  ['a field of an ExternalSecret', 'ExternalSecret', (f) => (at(f, 'spec').refresh = '1h'), 'unknown field'],
  [
    'a field of a ServiceMonitor',
    'ServiceMonitor',
    (f) => (at(f, 'spec.endpoints.0').ports = 'x'),
    'unknown field',
  ],
  ['a field of a route', 'HTTPRoute', (f) => (at(f, 'spec.rules.0').backends = []), 'unknown field'],
  ['a field of an Ingress', 'Ingress', (f) => (at(f, 'spec.rules.0').path = '/'), 'unknown field'],
  ['a wrong type', 'Deployment', (f) => (at(f, 'spec').progressDeadlineSeconds = '600'), 'must be integer'],
  ['a wrong word', 'ServiceMonitor', (f) => (at(f, 'spec.endpoints.0').scheme = 'ftp'), 'scheme'],
  [
    'a missing field',
    'Deployment',
    (f) => delete at(f, 'spec').selector,
    'must have required property selector',
  ],
  [
    'a wrong quantity',
    'Deployment',
    (f) => (at(f, `${CONTAINER}.resources.limits`).memory = '512 MB'),
    'memory',
  ],
  [
    'a version that is gone',
    'PodDisruptionBudget',
    (f) => (f.apiVersion = 'policy/v1beta1'),
    'has no known schema',
  ],
  ['a kind that nobody expects', 'Service', (f) => (f.kind = 'Pod'), 'has no known schema'],
];

describe('the Kubernetes schemas', () => {
  it('accept everything that is rendered', () => {
    expect(RENDERINGS.length).toBeGreaterThanOrEqual(7);
    expect(problemsOf(RENDERINGS.flatMap(({ objects }) => objects))).toEqual([]);
  });

  it('refuse what is wrong, each for its own reason', () => {
    const problems = problemsOf(FAULTS.map(([, kind, change]) => changed(kind, change)));
    const told = FAULTS.map(([what, , , says], index) => [what, problems[index]?.includes(says)]);
    expect(problems).toHaveLength(FAULTS.length);
    expect(told).toEqual(FAULTS.map(([what]) => [what, true]));
  });
});
