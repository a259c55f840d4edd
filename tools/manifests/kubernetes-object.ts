import type { IContainer } from 'kubernetes-models/v1/Container';
import type { IPodSpec } from 'kubernetes-models/v1/PodSpec';

export type Value = null | boolean | number | string | Value[] | { [key: string]: Value };
export type Fields = { [key: string]: Value };

/** One Kubernetes object as rendered. */
export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    name: string;
    namespace?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
  };
  readonly [key: string]: unknown;
}

/** A container that names its image. */
export type Container = IContainer & { readonly image: string };

/** The specification of a pod, whose containers all name an image. */
export interface PodSpec extends Omit<IPodSpec, 'containers' | 'initContainers' | 'ephemeralContainers'> {
  readonly containers: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly ephemeralContainers?: readonly Container[];
}

export interface Workload {
  readonly object: KubernetesObject;
  readonly labels: Record<string, string>;
  readonly pod: PodSpec;
}

/** Returns the name of an object in the checks' messages: `Deployment/auth-service`. */
export function title(object: KubernetesObject): string {
  return `${object.kind}/${object.metadata.name}`;
}

export function workloads(objects: readonly KubernetesObject[]): Workload[] {
  return objects.flatMap((object) => {
    const template = podTemplate(object);
    if (template === undefined) return [];
    return [{ object, labels: template.metadata?.labels ?? {}, pod: template.spec }];
  });
}

export function containers(pod: PodSpec): Container[] {
  return [...(pod.initContainers ?? []), ...pod.containers, ...(pod.ephemeralContainers ?? [])];
}

interface PodTemplate {
  metadata?: { labels?: Record<string, string> };
  spec: PodSpec;
}

function podTemplate(object: KubernetesObject): PodTemplate | undefined {
  const spec = object.spec as
    { template?: PodTemplate; jobTemplate?: { spec: { template: PodTemplate } } } | undefined;
  if (object.kind === 'CronJob') return spec?.jobTemplate?.spec.template;
  // In other kinds `template` means something else, e.g. the secret to create in an ExternalSecret.
  return ['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'Job'].includes(object.kind)
    ? spec?.template
    : undefined;
}

/** A label selector, as far as these manifests use it. */
export interface Selector {
  matchLabels?: Record<string, string>;
}

/**
 * Whether `labels` contain all labels of a selector. A missing or empty selector matches nothing here, unlike
 * in Kubernetes.
 */
export function matches(
  selector: Readonly<Record<string, string>> | undefined,
  labels: Readonly<Record<string, string>>,
): boolean {
  const wanted = Object.entries(selector ?? {});
  return wanted.length > 0 && wanted.every(([key, value]) => labels[key] === value);
}

export function matchesAny(selector: Selector | undefined, pods: readonly Workload[]): boolean {
  return pods.some(({ labels }) => matches(selector?.matchLabels, labels));
}

/** Whether there is at least one pod, and each has the port, by name or number. */
export function hasPort(pods: readonly Workload[], port: string | number): boolean {
  const named = ({ pod }: Workload): boolean =>
    containers(pod).some(({ ports = [] }) =>
      ports.some(({ name, containerPort }) => name === port || containerPort === port),
    );
  return pods.length > 0 && pods.every(named);
}

const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  k: 1e3,
  M: 1e6,
  G: 1e9,
};

/** Returns the bytes of a memory quantity such as `512Mi`. @throws {RangeError} for anything else */
export function bytesOf(quantity: number | string): number {
  const [, number, unit = ''] = /^(\d+(?:\.\d+)?)([A-Za-z]*)$/.exec(String(quantity)) ?? [];
  const factor = UNITS[unit];
  if (number === undefined || factor === undefined)
    throw new RangeError(`${quantity} is not a memory quantity`);
  return Number(number) * factor;
}

/** Splits an image reference: `registry:5000/app:1` → `registry:5000/app` and `:1`. */
export function splitImage(image: string): { repository: string; suffix: string } {
  const at = image.indexOf('@');
  if (at !== -1) return { repository: image.slice(0, at), suffix: image.slice(at) };
  const colon = image.lastIndexOf(':');
  if (colon <= image.lastIndexOf('/')) return { repository: image, suffix: '' };
  return { repository: image.slice(0, colon), suffix: image.slice(colon) };
}
