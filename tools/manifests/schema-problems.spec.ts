import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import type { KubernetesObject } from './kubernetes-object.ts';
import { EVERYTHING, renderAll } from './renderings.ts';
import { CONTAINER, type Fault, POD, withFault } from './test/faults.ts';

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

const FAULTS: readonly Fault[] = [
  ['a field at the top', 'Deployment', 'specs', {}, 'unknown field /specs'],
  ['a field of the metadata', 'Service', 'metadata.label', {}, 'unknown field /metadata/label'],
  [
    'a field of the pod',
    'Deployment',
    `${POD}.automountToken`,
    false,
    `unknown field /${POD.replaceAll('.', '/')}/automountToken`,
  ],
  ['a field of an operator', 'Pooler', 'spec.pgbouncer.mode', '', '"mode"'],
  ['a value of an operator', 'Cluster', 'spec.instances', '3', '/spec/instances'],
  ['a field of the container', 'Job', `${CONTAINER}.readOnly`, true, 'unknown field'],
  ['a field inside a probe', 'Deployment', `${CONTAINER}.livenessProbe.httpGet.url`, '/', 'unknown field'],
  ['a field of a suspended job', 'CronJob', 'spec.jobTemplate.spec.restartPolicy', 'Never', 'unknown field'],
  ['a field of a policy', 'NetworkPolicy', 'spec.podSelectors', {}, 'unknown field'],
  ['a field of a budget', 'PodDisruptionBudget', 'spec.minimum', 1, 'unknown field'],
  ['a field of an autoscaler', 'HorizontalPodAutoscaler', 'spec.targetCPU', 1, 'unknown field'],
  ['a field of an ExternalSecret', 'ExternalSecret', 'spec.refresh', '1h', 'unknown field'],
  ['a field of a ServiceMonitor', 'ServiceMonitor', 'spec.endpoints.0.ports', 'x', 'unknown field'],
  ['a field of a route', 'HTTPRoute', 'spec.rules.0.backends', [], 'unknown field'],
  ['a field of an Ingress', 'Ingress', 'spec.rules.0.path', '/', 'unknown field'],
  ['a wrong type', 'Deployment', 'spec.progressDeadlineSeconds', '600', 'must be integer'],
  ['a wrong word', 'ServiceMonitor', 'spec.endpoints.0.scheme', 'ftp', 'scheme'],
  ['a missing field', 'Deployment', 'spec.selector', undefined, 'must have required property selector'],
  ['a wrong quantity', 'Deployment', `${CONTAINER}.resources.limits.memory`, '512 MB', 'memory'],
  ['a version that is gone', 'PodDisruptionBudget', 'apiVersion', 'policy/v1beta1', 'has no known schema'],
  ['a kind that nobody expects', 'Service', 'kind', 'Pod', 'has no known schema'],
];

describe('the Kubernetes schemas', () => {
  it('accept everything that is rendered', () => {
    expect(RENDERINGS.length).toBeGreaterThanOrEqual(7);
    expect(problemsOf(RENDERINGS.flatMap(({ objects }) => objects))).toEqual([]);
  });

  it('refuse what is wrong, each for its own reason', () => {
    const all = RENDERINGS.find(({ folder }) => folder === EVERYTHING)?.objects ?? [];
    const spoilt = FAULTS.flatMap(([, kind, at, value]) => {
      const first = all.find((each) => each.kind === kind);
      return first === undefined ? [] : withFault([first], `${kind}/`, at, value);
    });
    const problems = problemsOf(spoilt);
    const told = FAULTS.map(([what, , , , says], index) => [what, problems[index]?.includes(says)]);
    expect(problems).toHaveLength(FAULTS.length);
    expect(told).toEqual(FAULTS.map(([what]) => [what, true]));
  });
});
