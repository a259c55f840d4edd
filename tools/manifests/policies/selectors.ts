import { type Workload, containers } from '../kubernetes-object.ts';

/** A label selector, as far as these manifests use it. */
export interface Selector {
  matchLabels?: Record<string, string>;
}

/** Whether `labels` hold everything that a selector asks for; a missing or empty selector does not count as a match here. */
export function matches(
  selector: Readonly<Record<string, string>> | undefined,
  labels: Readonly<Record<string, string>>,
): boolean {
  const wanted = Object.entries(selector ?? {});
  return wanted.length > 0 && wanted.every(([key, value]) => labels[key] === value);
}

/** Whether a selector finds any pod. */
export function matchesAny(selector: Selector | undefined, pods: readonly Workload[]): boolean {
  return pods.some(({ labels }) => matches(selector?.matchLabels, labels));
}

/** Whether there are pods and all of them have the port, by name or number. */
export function hasPort(pods: readonly Workload[], port: string | number): boolean {
  const named = ({ pod }: Workload): boolean =>
    containers(pod).some(({ ports = [] }) =>
      ports.some(({ name, containerPort }) => name === port || containerPort === port),
    );
  return pods.length > 0 && pods.every(named);
}
