import { splitImage } from '../kustomize/transformers.ts';
import {
  type Container,
  type KubernetesObject,
  type Workload,
  containers,
  title,
  workloads,
} from '../kubernetes-object.ts';
import { bytesOf } from './quantities.ts';
import { matches } from './selectors.ts';

type Rule = [holds: boolean, problem: string];

/** The rules of this platform for its pods, beyond what the Pod Security Standard asks. */
export function workloadProblems(objects: readonly KubernetesObject[]): string[] {
  return workloads(objects).flatMap((workload) => [
    ...broken(podRules(workload), title(workload.object)),
    ...containers(workload.pod).flatMap((container) =>
      broken(containerRules(container), `${title(workload.object)}: ${container.name}`),
    ),
    ...(workload.object.kind === 'Deployment' ? broken(serviceRules(workload), title(workload.object)) : []),
  ]);
}

function broken(rules: readonly Rule[], where: string): string[] {
  return rules.filter(([holds]) => !holds).map(([, problem]) => `${where}: ${problem}`);
}

function podRules({ pod, labels }: Workload): Rule[] {
  const spread = pod.topologySpreadConstraints ?? [];
  return [
    [pod.automountServiceAccountToken === false, 'automountServiceAccountToken must be false'],
    // Otherwise Kubernetes adds variables for every Service in the namespace.
    [pod.enableServiceLinks === false, 'enableServiceLinks must be false'],
    [pod.serviceAccountName !== undefined, 'needs a service account of its own'],
    [
      spread.every((item) => matches(item.labelSelector?.matchLabels, labels)),
      'topology spread does not count its own pods',
    ],
  ];
}

function containerRules(container: Container): Rule[] {
  const { requests = {}, limits = {} } = container.resources ?? {};
  const { suffix } = splitImage(container.image);
  const heap = /--max-old-space-size=(\d+)/.exec(
    container.env?.find(({ name }) => name === 'NODE_OPTIONS')?.value ?? '',
  );
  return [
    [container.securityContext?.readOnlyRootFilesystem === true, 'readOnlyRootFilesystem must be true'],
    [
      ['cpu', 'memory'].every((name) => name in requests && name in limits),
      'needs requests and limits for cpu and memory',
    ],
    [suffix !== '' && suffix !== ':latest', `image ${container.image} has no fixed version`],
    [heap !== null, 'NODE_OPTIONS must set --max-old-space-size'],
    // The rest is for buffers, stacks, native code and the young generation.
    [
      Number(heap?.[1]) * 2 ** 20 <= 0.7 * bytesOf(limits.memory ?? '0'),
      'the heap must leave 30 % of the memory limit',
    ],
  ];
}

function serviceRules({ object, pod }: Workload): Rule[] {
  const { replicas, strategy } = object.spec as {
    replicas?: number;
    strategy?: { rollingUpdate?: { maxUnavailable?: number; maxSurge?: number } };
  };
  const [container] = pod.containers;
  const update = strategy?.rollingUpdate;
  return [
    [replicas === undefined, 'replicas belong to the HorizontalPodAutoscaler'],
    [
      update?.maxUnavailable === 0 && (update.maxSurge ?? 0) > 0,
      'a rollout must start a new pod before it stops an old one',
    ],
    [(pod.topologySpreadConstraints ?? []).length > 0, 'needs a topology spread'],
    [container?.startupProbe !== undefined, 'needs a startup probe'],
    [container?.readinessProbe !== undefined, 'needs a readiness probe'],
    [container?.livenessProbe !== undefined, 'needs a liveness probe'],
    [(container?.lifecycle?.preStop?.sleep?.seconds ?? 0) > 0, 'needs a preStop sleep'],
  ];
}
