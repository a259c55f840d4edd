import type { IDeploymentSpec } from 'kubernetes-models/apps/v1/DeploymentSpec';
import type { IHorizontalPodAutoscalerSpec } from 'kubernetes-models/autoscaling/v2/HorizontalPodAutoscalerSpec';
import type { IPodDisruptionBudgetSpec } from 'kubernetes-models/policy/v1/PodDisruptionBudgetSpec';
import {
  bytesOf,
  type Container,
  containers,
  type KubernetesObject,
  matches,
  type PodSpec,
  splitImage,
  title,
  type Workload,
  workloads,
} from './kubernetes-object.ts';
import { networkPolicyProblems, referenceProblems, routeProblems } from './references.ts';
import { podSecurityProblems } from './pod-security.ts';
import { secretProblems } from './secrets.ts';

const CHECKS = [
  podSecurityProblems,
  workloadProblems,
  availabilityProblems,
  referenceProblems,
  routeProblems,
  networkPolicyProblems,
  secretProblems,
  settingProblems,
];

/** Runs all checks but those of the schemas and of the applications' own configuration. */
export function policyProblems(objects: readonly KubernetesObject[]): string[] {
  return CHECKS.flatMap((check) => check(objects));
}

type Rule = [holds: boolean, problem: string];

/** Checks this platform's own rules for pods, beyond the Pod Security Standard. */
function workloadProblems(objects: readonly KubernetesObject[]): string[] {
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
  const heap = /--max-old-space-size=(\d+)/.exec(nodeOptions(container));
  return [
    [container.securityContext?.readOnlyRootFilesystem === true, 'readOnlyRootFilesystem must be true'],
    [
      ['cpu', 'memory'].every((name) => name in requests && name in limits),
      'needs requests and limits for cpu and memory',
    ],
    [suffix !== '' && suffix !== ':latest', `image ${container.image} has no fixed version`],
    [heap !== null, 'NODE_OPTIONS must set --max-old-space-size'],
    // The other 30 % are for buffers, stacks, native code and the young generation.
    [
      Number(heap?.[1]) * 2 ** 20 <= 0.7 * bytesOf(limits.memory ?? '0'),
      'the heap must leave 30 % of the memory limit',
    ],
  ];
}

function serviceRules({ object, pod }: Workload): Rule[] {
  const { replicas, strategy } = object.spec as IDeploymentSpec;
  const [container] = pod.containers;
  const update = strategy?.rollingUpdate;
  return [
    [replicas === undefined, 'replicas belong to the HorizontalPodAutoscaler'],
    [
      update?.maxUnavailable === 0 && Number(update.maxSurge ?? 0) > 0,
      'a rollout must start a new pod before it stops an old one',
    ],
    [(pod.topologySpreadConstraints ?? []).length > 0, 'needs a topology spread'],
    [
      nodeOptions(container).includes('--max-semi-space-size='),
      'NODE_OPTIONS must set --max-semi-space-size',
    ],
    [container?.startupProbe !== undefined, 'needs a startup probe'],
    [container?.readinessProbe !== undefined, 'needs a readiness probe'],
    [container?.livenessProbe !== undefined, 'needs a liveness probe'],
    [(container?.lifecycle?.preStop?.sleep?.seconds ?? 0) > 0, 'needs a preStop sleep'],
  ];
}

/**
 * Checks that every Deployment always has two replicas, and that a rollout and a node's drain can still
 * proceed.
 */
function availabilityProblems(objects: readonly KubernetesObject[]): string[] {
  const deployments = workloads(objects).filter(({ object }) => object.kind === 'Deployment');
  return deployments.flatMap((deployment) =>
    [...autoscalerProblems(deployment, objects), ...budgetProblems(deployment, objects)].map(
      (problem) => `${title(deployment.object)}: ${problem}`,
    ),
  );
}

function autoscalerProblems({ object }: Workload, objects: readonly KubernetesObject[]): string[] {
  const scalers = ofKind<IHorizontalPodAutoscalerSpec>(objects, 'HorizontalPodAutoscaler').filter(
    ({ scaleTargetRef: { kind, name } }) => kind === object.kind && name === object.metadata.name,
  );
  const [scaler] = scalers;
  if (scaler === undefined || scalers.length > 1) return ['needs exactly one HorizontalPodAutoscaler'];
  if ((scaler.minReplicas ?? 1) < 2) return ['minReplicas must be at least 2'];
  return scaler.maxReplicas > (scaler.minReplicas ?? 1) ? [] : ['maxReplicas must leave room to scale'];
}

function budgetProblems({ labels }: Workload, objects: readonly KubernetesObject[]): string[] {
  const budgets = ofKind<IPodDisruptionBudgetSpec>(objects, 'PodDisruptionBudget').filter(({ selector }) =>
    matches(selector?.matchLabels, labels),
  );
  const [budget] = budgets;
  if (budget === undefined || budgets.length > 1) return ['needs exactly one PodDisruptionBudget'];
  // With two replicas, one must be evictable and one must stay.
  const allowsOne = budget.maxUnavailable === 1 || budget.minAvailable === 1;
  return allowsOne ? [] : ['the budget must allow the eviction of one of two replicas'];
}

function ofKind<T>(objects: readonly KubernetesObject[], kind: string): T[] {
  return objects.filter((object) => object.kind === kind).map(({ spec }) => spec as T);
}

type Settings = Readonly<Record<string, string>>;

/** Settings that must be equal in all services, or they refuse each other's tokens. */
const SHARED_SETTINGS = ['TOKEN_ISSUER', 'TOKEN_AUDIENCE', 'ACCESS_TOKEN_HMAC_KEY_ID'];
/** Reserve in the grace period after the longest possible shutdown, in ms. */
const MARGIN_MS = 5_000;
/** Memory of one password hash: argon2id with 19 MiB. */
const HASH_BYTES = 19 * 2 ** 20;

/** Returns the settings that contradict each other or their pods. */
function settingProblems(objects: readonly KubernetesObject[]): string[] {
  const configMaps = objects.filter(({ kind }) => kind === 'ConfigMap');
  const settings = new Map(configMaps.map(({ metadata, data }) => [metadata.name, data as Settings]));
  const differing = SHARED_SETTINGS.filter(
    (name) => new Set([...settings.values()].flatMap((map) => map[name] ?? [])).size > 1,
  );
  const contradicting = workloads(objects).flatMap(({ object, pod }) => {
    const [container] = pod.containers;
    const own = settings.get(container?.envFrom?.[0]?.configMapRef?.name ?? '');
    if (container === undefined || own === undefined) return [];
    return contradictions(pod, container, own).map((problem) => `${title(object)}: ${problem}`);
  });
  return [...differing.map((name) => `${name} differs between the services`), ...contradicting];
}

function contradictions(pod: PodSpec, container: Container, settings: Settings): string[] {
  const { SHUTDOWN_GRACE_MS, SHUTDOWN_TIMEOUT_MS, PORT, METRICS_PORT, PASSWORD_HASH_CONCURRENCY } = settings;
  const preStopMs = (container.lifecycle?.preStop?.sleep?.seconds ?? 0) * 1_000;
  const neededMs = preStopMs + Number(SHUTDOWN_GRACE_MS) + Number(SHUTDOWN_TIMEOUT_MS) + MARGIN_MS;
  const port = (name: string): string =>
    String((container.ports ?? []).find((item) => item.name === name)?.containerPort);
  const hashBytes = Number(PASSWORD_HASH_CONCURRENCY ?? 0) * HASH_BYTES;
  const limit = bytesOf(container.resources?.limits?.memory ?? '0');
  const rules: [boolean, string][] = [
    [
      (pod.terminationGracePeriodSeconds ?? 0) * 1_000 >= neededMs,
      'the grace period is shorter than a shutdown may take',
    ],
    [port('http') === PORT, 'the port http is not PORT'],
    [port('metrics') === METRICS_PORT, 'the port metrics is not METRICS_PORT'],
    [settings.HOST === '0.0.0.0', 'HOST must be 0.0.0.0: probes come from outside the pod'],
    [
      settings.TOKEN_RATE_LIMIT_PER_ADDRESS === undefined || settings.TRUSTED_PROXIES !== undefined,
      'TOKEN_RATE_LIMIT_PER_ADDRESS needs TRUSTED_PROXIES, or it counts all clients behind a proxy as one',
    ],
    [
      heapBytes(container) + hashBytes <= 0.8 * limit,
      'heap and password hashes must leave 20 % of the memory limit',
    ],
  ];
  return rules.filter(([holds]) => !holds).map(([, problem]) => problem);
}

function heapBytes(container: Container): number {
  return Number(/--max-old-space-size=(\d+)/.exec(nodeOptions(container))?.[1] ?? 0) * 2 ** 20;
}

function nodeOptions(container: Container | undefined): string {
  return container?.env?.find(({ name }) => name === 'NODE_OPTIONS')?.value ?? '';
}
