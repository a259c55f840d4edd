import { type KubernetesObject, type Workload, title, workloads } from '../kubernetes-object.ts';
import { hasPort, matches } from './selectors.ts';
import type { Selector } from './selectors.ts';

interface ServiceSpec {
  selector: Record<string, string>;
  ports: { name: string; port: number; targetPort?: string | number }[];
}

interface Backend {
  name: string;
  port: string | number;
}

/** Services that find no pods or ports, and Ingresses, routes and monitors that find no Service. */
export function routeProblems(objects: readonly KubernetesObject[]): string[] {
  const pods = workloads(objects);
  const services = objects.filter(({ kind }) => kind === 'Service');
  return objects.flatMap((object) => {
    const problems = [
      ...(object.kind === 'Service' ? serviceProblems(object.spec as ServiceSpec, pods) : []),
      ...(object.kind === 'ServiceMonitor' ? monitorProblems(object, services) : []),
      ...backendsOf(object)
        .filter((backend) => !isThere(backend, services))
        .map(({ name, port }) => `there is no port ${port} of a Service ${name}`),
    ];
    return problems.map((problem) => `${title(object)}: ${problem}`);
  });
}

function serviceProblems({ selector, ports }: ServiceSpec, pods: readonly Workload[]): string[] {
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
    .filter(({ port }) => !isThere({ name, port }, services))
    .map(({ port }) => `there is no port ${port} of the Service ${name}`);
}

function backendsOf({ kind, spec }: KubernetesObject): Backend[] {
  if (kind === 'HTTPRoute') {
    return (spec as { rules: { backendRefs: Backend[] }[] }).rules.flatMap(({ backendRefs }) => backendRefs);
  }
  if (kind !== 'Ingress') return [];
  type Path = { backend: { service: { name: string; port: { name?: string; number?: number } } } };
  const { rules } = spec as { rules: { http: { paths: Path[] } }[] };
  return rules.flatMap(({ http }) =>
    http.paths.map(({ backend: { service } }) => ({
      name: service.name,
      port: service.port.name ?? service.port.number ?? '',
    })),
  );
}

function isThere({ name, port }: Backend, services: readonly KubernetesObject[]): boolean {
  return services.some(
    ({ metadata, spec }) =>
      metadata.name === name &&
      (spec as ServiceSpec).ports.some((item) => item.name === port || item.port === port),
  );
}
