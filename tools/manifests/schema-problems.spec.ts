import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import type { KubernetesObject } from './kubernetes-object.ts';
import { EVERYTHING, renderAll } from './renderings.ts';
import { CONTAINER, type Fault, POD, withFault } from './test/faults.ts';

// The tests start other processes, which is slow.
jest.setTimeout(60_000);

const WORKSPACE = join(__dirname, '../..');
const RENDERINGS = renderAll(WORKSPACE);

/**
 * Returns the problems that the schemas find. Runs in a separate process, because the validators are ES
 * modules.
 */
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
  ['a removed API version', 'PodDisruptionBudget', 'apiVersion', 'policy/v1beta1', 'has no known schema'],
  ['an unexpected kind', 'Service', 'kind', 'Pod', 'has no known schema'],
];

describe('the Kubernetes schemas', () => {
  it('accept everything that is rendered', () => {
    expect(RENDERINGS.length).toBeGreaterThanOrEqual(7);
    expect(problemsOf(RENDERINGS.flatMap(({ objects }) => objects))).toEqual([]);
  });

  it('refuse each fault with its own message', () => {
    const all = RENDERINGS.find(({ folder }) => folder === EVERYTHING)?.objects ?? [];
    const spoilt = FAULTS.flatMap(([, kind, at, value]) => {
      const first = all.find((each) => each.kind === kind);
      return first === undefined ? [] : withFault([first], `${kind}/`, at, value);
    });
    const problems = problemsOf(spoilt);
    const reported = FAULTS.map(([what, , , , message], index) => [what, problems[index]?.includes(message)]);
    expect(problems).toHaveLength(FAULTS.length);
    expect(reported).toEqual(FAULTS.map(([what]) => [what, true]));
  });
});
