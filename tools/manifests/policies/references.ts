import { type KubernetesObject, type Workload, containers, title, workloads } from '../kubernetes-object.ts';
import { matches, matchesAny } from './selectors.ts';
import type { Selector } from './selectors.ts';

/** ConfigMaps that are made outside. */
const OTHERS_CONFIG_MAPS: readonly string[] = ['platform-ca'];

/**
 * What a pod template names and there is not: ConfigMaps, service accounts, ports of probes; and selectors that miss their pods.
 * @param objects everything that stands in the namespace
 */
export function referenceProblems(objects: readonly KubernetesObject[]): string[] {
  const pods = workloads(objects);
  return [
    ...pods.flatMap((workload) =>
      inPod(workload, objects).map((problem) => `${title(workload.object)}: ${problem}`),
    ),
    ...objects.flatMap((object) => inSelector(object, pods).map((problem) => `${title(object)}: ${problem}`)),
  ];
}

function inPod({ pod }: Workload, objects: readonly KubernetesObject[]): string[] {
  const has = (kind: string, name: string): boolean =>
    objects.some((object) => object.kind === kind && object.metadata.name === name);
  const account = pod.serviceAccountName ?? 'default';
  return [
    ...(has('ServiceAccount', account) ? [] : [`there is no service account ${account}`]),
    ...configMapsOf({ pod })
      .filter((name) => !has('ConfigMap', name) && !OTHERS_CONFIG_MAPS.includes(name))
      .map((name) => `there is no ConfigMap ${name}`),
    ...probePortsThatAreMissing({ pod }).map((port) => `a probe asks port ${port}, which there is not`),
  ];
}

function configMapsOf({ pod }: Pick<Workload, 'pod'>): string[] {
  const volumes = (pod.volumes ?? []) as { configMap?: { name: string } }[];
  const references = [
    ...volumes.map(({ configMap }) => configMap),
    ...containers(pod).flatMap(({ envFrom = [] }) => envFrom.map(({ configMapRef }) => configMapRef)),
    ...containers(pod).flatMap(({ env = [] }) => env.map(({ valueFrom }) => valueFrom?.configMapKeyRef)),
  ];
  return references.flatMap((reference) => (reference === undefined ? [] : [reference.name]));
}

function probePortsThatAreMissing({ pod }: Pick<Workload, 'pod'>): (string | number)[] {
  return containers(pod).flatMap(({ ports = [], startupProbe, readinessProbe, livenessProbe }) =>
    [startupProbe, readinessProbe, livenessProbe]
      .flatMap((probe) => probe?.httpGet?.port ?? [])
      .filter((port) => !ports.some(({ name, containerPort }) => name === port || containerPort === port)),
  );
}

function inSelector({ kind, spec }: KubernetesObject, pods: readonly Workload[]): string[] {
  if (kind === 'PodDisruptionBudget') {
    return matchesAny((spec as { selector: Selector }).selector, pods) ? [] : ['the selector matches no pod'];
  }
  if (kind !== 'Deployment') return [];
  const { selector, template } = spec as {
    selector: Selector;
    template: { metadata: { labels: Record<string, string> } };
  };
  return matches(selector.matchLabels, template.metadata.labels)
    ? []
    : ['the selector does not match its own pods'];
}
