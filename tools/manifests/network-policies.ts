import type { INetworkPolicyEgressRule } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicyEgressRule';
import type { INetworkPolicyIngressRule } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicyIngressRule';
import type { INetworkPolicySpec } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicySpec';
import { hasPort, matches, matchesAny, title, workloads } from './kubernetes-object.ts';
import type { KubernetesObject, Selector, Workload } from './kubernetes-object.ts';

type Rule = INetworkPolicyIngressRule & INetworkPolicyEgressRule;

/** Pods of this namespace that others bring, teams and operators: a policy may name them. */
const OTHERS_PODS: readonly Record<string, string>[] = [
  { 'app.kubernetes.io/name': 'customers-service' },
  { 'app.kubernetes.io/name': 'rabbitmq' },
  { 'cnpg.io/cluster': 'platform' },
  // What the step `prepare` lets in comes with later steps.
  { 'app.kubernetes.io/part-of': 'property-platform' },
];

/**
 * Network policies that select nobody, name pods or ports that there are not, or open more than they say; and pods that no policy of
 * their own covers.
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
    ...(selected.length === 0 && !isForAll && !isOthers(spec.podSelector)
      ? ['the pod selector matches no pod']
      : []),
    ...[...ingress, ...egress].flatMap((rule) => peerProblems(rule, pods)),
    ...ingress.flatMap((rule) => portProblems(rule, selected)),
    ...egress.flatMap((rule) => portProblems(rule, peersOf(rule, pods))),
    ...ingress.filter(({ from = [] }) => from.length === 0).map(() => 'lets everybody in'),
    ...egress
      .filter(({ to = [], ports = [] }) => to.length === 0 && ports.length === 0)
      .map(() => 'lets everything out'),
  ];
}

function peerProblems({ from = [], to = [] }: Rule, pods: readonly Workload[]): string[] {
  return [...from, ...to]
    .filter((peer) => peer.namespaceSelector === undefined && peer.podSelector !== undefined)
    .filter(({ podSelector }) => !matchesAny(podSelector, pods) && !isOthers(podSelector))
    .map(({ podSelector }) => `no pod has the labels ${JSON.stringify(podSelector?.matchLabels)}`);
}

/** Only named ports can be checked everywhere: a number may be a port of something outside. */
function portProblems({ ports = [] }: Rule, pods: readonly Workload[]): string[] {
  return ports
    .flatMap(({ port }) => (typeof port === 'string' && !hasPort(pods, port) ? [port] : []))
    .map((port) => `there is no port ${port}`);
}

function peersOf({ to = [] }: Rule, pods: readonly Workload[]): Workload[] {
  return pods.filter(({ labels }) => to.some(({ podSelector }) => matches(podSelector?.matchLabels, labels)));
}

function isOthers(selector: Selector | undefined): boolean {
  return OTHERS_PODS.some((labels) => matches(selector?.matchLabels, labels));
}
