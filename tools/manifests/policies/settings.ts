import {
  type Container,
  type KubernetesObject,
  type PodSpec,
  title,
  workloads,
} from '../kubernetes-object.ts';
import { bytesOf } from './quantities.ts';

type Settings = Readonly<Record<string, string>>;

/** What all services must be told alike, or they refuse each other's tokens. */
const ALIKE = ['TOKEN_ISSUER', 'TOKEN_AUDIENCE', 'ACCESS_TOKEN_HMAC_KEY_ID'];
/** What is left of the grace period when everything took as long as it may. */
const MARGIN_MS = 5_000;
/** Memory of one password hash: argon2id with 19 MiB. */
const HASH_BYTES = 19 * 2 ** 20;

/** Settings that contradict each other, or the pods that they are for. */
export function settingProblems(objects: readonly KubernetesObject[]): string[] {
  const configMaps = objects.filter(({ kind }) => kind === 'ConfigMap');
  const settings = new Map(configMaps.map(({ metadata, data }) => [metadata.name, data as Settings]));
  const differing = ALIKE.filter(
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
      heapBytes(container) + hashBytes <= 0.8 * limit,
      'heap and password hashes must leave 20 % of the memory limit',
    ],
  ];
  return rules.filter(([holds]) => !holds).map(([, problem]) => problem);
}

function heapBytes(container: Container): number {
  const options = container.env?.find(({ name }) => name === 'NODE_OPTIONS')?.value ?? '';
  return Number(/--max-old-space-size=(\d+)/.exec(options)?.[1] ?? 0) * 2 ** 20;
}
