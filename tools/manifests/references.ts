import type { IDeploymentSpec } from 'kubernetes-models/apps/v1/DeploymentSpec';
import type { IIngressSpec } from 'kubernetes-models/networking.k8s.io/v1/IngressSpec';
import type { INetworkPolicyEgressRule } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicyEgressRule';
import type { INetworkPolicyIngressRule } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicyIngressRule';
import type { INetworkPolicySpec } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicySpec';
import type { IServiceSpec } from 'kubernetes-models/v1/ServiceSpec';
import {
  containers,
  hasPort,
  type KubernetesObject,
  matches,
  matchesAny,
  type Selector,
  title,
  type Workload,
  workloads,
} from './kubernetes-object.ts';

/** ConfigMaps that are created outside these manifests. */
const EXTERNAL_CONFIG_MAPS: readonly string[] = ['platform-ca'];

/**
 * Returns what pod templates refer to but does not exist (ConfigMaps, service accounts, ports of probes), and
 * selectors that miss their pods.
 * @param objects all objects of the namespace
 */
export function referenceProblems(objects: readonly KubernetesObject[]): string[] {
  const pods = workloads(objects);
  return [
    ...pods.flatMap((workload) =>
      podReferenceProblems(workload, objects).map((problem) => `${title(workload.object)}: ${problem}`),
    ),
    ...objects.flatMap((object) =>
      selectorProblems(object, pods).map((problem) => `${title(object)}: ${problem}`),
    ),
  ];
}

function podReferenceProblems({ pod }: Workload, objects: readonly KubernetesObject[]): string[] {
  const has = (kind: string, name: string): boolean =>
    objects.some((object) => object.kind === kind && object.metadata.name === name);
  const account = pod.serviceAccountName ?? 'default';
  return [
    ...(has('ServiceAccount', account) ? [] : [`there is no service account ${account}`]),
    ...configMapsOf({ pod })
      .filter((name) => !has('ConfigMap', name) && !EXTERNAL_CONFIG_MAPS.includes(name))
      .map((name) => `there is no ConfigMap ${name}`),
    ...missingProbePorts({ pod }).map(
      (port) => `a probe asks port ${port}, which its container does not declare`,
    ),
  ];
}

function configMapsOf({ pod }: Pick<Workload, 'pod'>): string[] {
  const references = [
    ...(pod.volumes ?? []).map(({ configMap }) => configMap),
    ...containers(pod).flatMap(({ envFrom = [] }) => envFrom.map(({ configMapRef }) => configMapRef)),
    ...containers(pod).flatMap(({ env = [] }) => env.map(({ valueFrom }) => valueFrom?.configMapKeyRef)),
  ];
  return references.flatMap((reference) => reference?.name ?? []);
}

function missingProbePorts({ pod }: Pick<Workload, 'pod'>): (string | number)[] {
  return containers(pod).flatMap(({ ports = [], startupProbe, readinessProbe, livenessProbe }) =>
    [startupProbe, readinessProbe, livenessProbe]
      .flatMap((probe) => probe?.httpGet?.port ?? [])
      .filter((port) => !ports.some(({ name, containerPort }) => name === port || containerPort === port)),
  );
}

function selectorProblems({ kind, spec }: KubernetesObject, pods: readonly Workload[]): string[] {
  if (kind === 'PodDisruptionBudget') {
    return matchesAny((spec as { selector: Selector }).selector, pods) ? [] : ['the selector matches no pod'];
  }
  if (kind !== 'Deployment') return [];
  const { selector, template } = spec as IDeploymentSpec;
  return matches(selector.matchLabels, template.metadata?.labels ?? {})
    ? []
    : ['the selector does not match its own pods'];
}

interface Backend {
  name: string;
  port: string | number;
}

/**
 * Returns Services whose pods or ports do not exist, and Ingresses, routes and monitors whose Service does
 * not exist.
 */
export function routeProblems(objects: readonly KubernetesObject[]): string[] {
  const pods = workloads(objects);
  const services = objects.filter(({ kind }) => kind === 'Service');
  return objects.flatMap((object) => {
    const problems = [
      ...(object.kind === 'Service' ? serviceProblems(object.spec as IServiceSpec, pods) : []),
      ...(object.kind === 'ServiceMonitor' ? monitorProblems(object, services) : []),
      ...backendsOf(object)
        .filter((backend) => !hasServicePort(backend, services))
        .map(({ name, port }) => `there is no port ${port} of a Service ${name}`),
    ];
    return problems.map((problem) => `${title(object)}: ${problem}`);
  });
}

function serviceProblems({ selector, ports = [] }: IServiceSpec, pods: readonly Workload[]): string[] {
  const selected = pods.filter(({ labels }) => matches(selector, labels));
  if (selected.length !== 1) return [`the selector matches ${selected.length} pod templates`];
  return ports
    .map(({ targetPort, port }) => targetPort ?? port)
    .filter((port) => !hasPort(selected, port))
    .map((port) => `the pods have no port ${port}`);
}

function monitorProblems({ spec }: KubernetesObject, services: readonly KubernetesObject[]): string[] {
  const { selector, endpoints } = spec as { selector: Selector; endpoints: { port: string }[] };
  const selected = services.filter(({ metadata }) => matches(selector.matchLabels, metadata.labels ?? {}));
  const [service] = selected;
  if (service === undefined || selected.length > 1)
    return [`the selector matches ${selected.length} Services`];
  const { name } = service.metadata;
  return endpoints
    .filter(({ port }) => !hasServicePort({ name, port }, services))
    .map(({ port }) => `there is no port ${port} of the Service ${name}`);
}

function backendsOf({ kind, spec }: KubernetesObject): Backend[] {
  if (kind === 'HTTPRoute') {
    return (spec as { rules: { backendRefs: Backend[] }[] }).rules.flatMap(({ backendRefs }) => backendRefs);
  }
  if (kind !== 'Ingress') return [];
  return ((spec as IIngressSpec).rules ?? []).flatMap(({ http }) =>
    (http?.paths ?? []).map(({ backend: { service } }) => ({
      name: service?.name ?? '',
      port: service?.port?.name ?? service?.port?.number ?? '',
    })),
  );
}

function hasServicePort({ name, port }: Backend, services: readonly KubernetesObject[]): boolean {
  return services.some(
    ({ metadata, spec }) =>
      metadata.name === name &&
      (spec as IServiceSpec).ports?.some((item) => item.name === port || item.port === port),
  );
}

type Rule = INetworkPolicyIngressRule & INetworkPolicyEgressRule;

/** Labels of pods that other teams and operators run in this namespace; a policy may name them. */
const EXTERNAL_PODS: readonly Record<string, string>[] = [
  { 'app.kubernetes.io/name': 'customers-service' },
  { 'app.kubernetes.io/name': 'rabbitmq' },
  { 'cnpg.io/cluster': 'platform' },
  // The step `prepare` admits pods that later steps create.
  { 'app.kubernetes.io/part-of': 'property-platform' },
];

/**
 * Returns network policies that select no pod, name pods or ports that do not exist, or allow everything; and
 * pods that no single policy covers in both directions.
 */
export function networkPolicyProblems(objects: readonly KubernetesObject[]): string[] {
  const pods = workloads(objects);
  const policies = objects.filter(({ kind }) => kind === 'NetworkPolicy');
  const uncovered = pods.filter(
    ({ labels }) => !policies.some((policy) => coversFully(specOf(policy), labels)),
  );
  return [
    ...policies.flatMap((policy) =>
      problemsOf(specOf(policy), pods).map((problem) => `${title(policy)}: ${problem}`),
    ),
    ...uncovered.map(({ object }) => `${title(object)}: no network policy covers both directions`),
  ];
}

function specOf({ spec }: KubernetesObject): INetworkPolicySpec {
  return spec as INetworkPolicySpec;
}

function coversFully(
  { podSelector, policyTypes = [] }: INetworkPolicySpec,
  labels: Record<string, string>,
): boolean {
  return (
    matches(podSelector?.matchLabels, labels) &&
    policyTypes.includes('Ingress') &&
    policyTypes.includes('Egress')
  );
}

function problemsOf(spec: INetworkPolicySpec, pods: readonly Workload[]): string[] {
  const isForAll = spec.podSelector?.matchLabels === undefined;
  const selected = isForAll
    ? pods
    : pods.filter(({ labels }) => matches(spec.podSelector?.matchLabels, labels));
  const { ingress = [], egress = [] } = spec;
  return [
    ...(selected.length === 0 && !isForAll && !isExternal(spec.podSelector)
      ? ['the pod selector matches no pod']
      : []),
    ...[...ingress, ...egress].flatMap((rule) => peerProblems(rule, pods)),
    ...ingress.flatMap((rule) => portProblems(rule, selected)),
    ...egress.flatMap((rule) => portProblems(rule, peersOf(rule, pods))),
    ...ingress.filter(({ from = [] }) => from.length === 0).map(() => 'allows ingress from anywhere'),
    ...egress
      .filter(({ to = [], ports = [] }) => to.length === 0 && ports.length === 0)
      .map(() => 'allows egress to anywhere'),
  ];
}

function peerProblems({ from = [], to = [] }: Rule, pods: readonly Workload[]): string[] {
  return [...from, ...to]
    .filter((peer) => peer.namespaceSelector === undefined && peer.podSelector !== undefined)
    .filter(({ podSelector }) => !matchesAny(podSelector, pods) && !isExternal(podSelector))
    .map(({ podSelector }) => `no pod has the labels ${JSON.stringify(podSelector?.matchLabels)}`);
}

/** Checks named ports only: a number may be a port outside these manifests. */
function portProblems({ ports = [] }: Rule, pods: readonly Workload[]): string[] {
  return ports
    .flatMap(({ port }) => (typeof port === 'string' && !hasPort(pods, port) ? [port] : []))
    .map((port) => `there is no port ${port}`);
}

function peersOf({ to = [] }: Rule, pods: readonly Workload[]): Workload[] {
  return pods.filter(({ labels }) => to.some(({ podSelector }) => matches(podSelector?.matchLabels, labels)));
}

function isExternal(selector: Selector | undefined): boolean {
  return EXTERNAL_PODS.some((labels) => matches(selector?.matchLabels, labels));
}
