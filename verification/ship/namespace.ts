import type { IDeploymentSpec } from 'kubernetes-models/apps/v1/DeploymentSpec';
import type { IServiceSpec } from 'kubernetes-models/v1/ServiceSpec';
import { containerEnvironment } from '#manifests/environment.ts';
import {
  bytesOf,
  type Container,
  type KubernetesObject,
  matches,
  type PodSpec,
  splitImage,
  type Workload,
  workloads,
} from '#manifests/kubernetes-object.ts';
import { FriendlyError } from '#platform/errors.ts';
import { TcpProxy } from '#platform/tcp-proxy.ts';
import type { ContainerSpec, Engine } from './engine.ts';
import { imageOf } from './images.ts';
import { Pod } from './pod.ts';

/** The rendered manifests of an overlay, and the tag of the release's images. */
export interface Release {
  readonly tag: string;
  readonly database: readonly KubernetesObject[];
  readonly services: readonly KubernetesObject[];
}

const READY_TIMEOUT_MS = 120_000;
const REPLICAS = 2;

/**
 * Emulates a Kubernetes namespace on one machine: Jobs, rolling updates of Deployments, probes and Services.
 * It has no network policies and no scheduling.
 */
export class Namespace {
  readonly #engine: Engine;
  readonly #secrets: ReadonlyMap<string, string>;
  readonly #pods = new Map<string, Pod[]>();
  readonly #services = new Map<string, TcpProxy>();
  /** Host names of Services and neighbours, with their addresses. */
  readonly hosts: Record<string, string> = {};
  #count = 0;

  /** @param secrets values by `<secret>/<key>`. They are read whenever a pod starts. */
  constructor(engine: Engine, secrets: ReadonlyMap<string, string>) {
    this.#engine = engine;
    this.#secrets = secrets;
  }

  /**
   * Runs the Jobs of one component to their end, one after the other. Returns their output by name.
   * @throws {FriendlyError} if there is no such Job, or if one fails
   */
  async runJobs({ tag, database }: Release, component: string): Promise<Map<string, string>> {
    const printed = new Map<string, string>();
    const jobs = workloads(database).filter(
      ({ object }) =>
        object.kind === 'Job' && object.metadata.labels?.['app.kubernetes.io/component'] === component,
    );
    if (jobs.length === 0) throw new FriendlyError(`There is no Job of the component ${component}.`);
    for (const { object, pod } of jobs) {
      const outputs: string[] = [];
      for (const container of [...(pod.initContainers ?? []), ...pod.containers]) {
        const spec = this.#specOf({ container, pod }, database, tag);
        outputs.push(await this.#engine.runToEnd(spec, this.hosts));
        await this.#engine.remove([this.#engine.container(spec.name)]);
      }
      printed.set(object.metadata.name, outputs.join(''));
    }
    return printed;
  }

  /**
   * Starts an idle pod from the template of a suspended CronJob, runs `work` with its administration command,
   * as k8s/README.md describes, and removes the pod.
   */
  async administer<T>(
    { tag, database }: Release,
    cronJob: string,
    work: (admin: (...args: readonly string[]) => Promise<string>) => Promise<T>,
  ): Promise<T> {
    const { pod } = find(database, 'CronJob', cronJob);
    const [container] = pod.containers;
    if (container === undefined) throw new FriendlyError(`${cronJob} has no container.`);
    const idle = { ...container, command: ['sleep'], args: ['600'] };
    const spec = this.#specOf({ container: idle, pod }, database, tag);
    await this.#engine.start(spec, this.hosts);
    const name = this.#engine.container(spec.name);
    try {
      return await work((...args) => this.#engine.call(['exec', name, 'node', 'admin.js', ...args]));
    } finally {
      await this.#engine.remove([name]);
    }
  }

  /**
   * Opens the Services. New connections go in turn to the ready pods.
   * @param address returns an address for a Service
   */
  async openServices({ services }: Release, address: (name: string) => Promise<string>): Promise<void> {
    for (const object of services.filter(({ kind }) => kind === 'Service')) {
      const { name } = object.metadata;
      const spec = object.spec as IServiceSpec;
      const port = spec.ports?.find((each) => each.name === 'http')?.port ?? 0;
      const deployment = find(services, 'Deployment', name);
      if (!matches(spec.selector, deployment.labels))
        throw new FriendlyError(`Service ${name} selects no pod.`);
      let turn = 0;
      const proxy = new TcpProxy(() => {
        const ready = this.pods(name).filter((pod) => pod.isReady);
        turn += 1;
        const pod = ready[turn % ready.length];
        return pod === undefined ? null : { host: pod.ip, port: pod.port };
      });
      const host = await address(name);
      await proxy.listen(port, host);
      this.#services.set(name, proxy);
      this.hosts[name] = host;
    }
  }

  pods(deployment: string): readonly Pod[] {
    return this.#pods.get(deployment) ?? [];
  }

  get allPods(): readonly Pod[] {
    return [...this.#pods.values()].flat();
  }

  /**
   * Rolls a Deployment out to a release, pod by pod. Each new pod must be ready before an old one stops.
   * @throws {FriendlyError} if the strategy differs, or if a pod does not become ready, fails or does not
   * exit with 0
   */
  async rollOut(name: string, { tag, services }: Release): Promise<void> {
    const { object, pod: template } = find(services, 'Deployment', name);
    const { strategy } = object.spec as IDeploymentSpec;
    if (strategy?.rollingUpdate?.maxSurge !== 1 || strategy.rollingUpdate.maxUnavailable !== 0)
      throw new FriendlyError(`${name} has a strategy that this tool does not support.`);
    const [container] = template.containers;
    if (container === undefined || template.containers.length > 1 || template.initContainers !== undefined)
      throw new FriendlyError(`${name} does not have exactly one container, as this tool requires.`);
    const old = [...this.pods(name)];
    for (let count = 0; count < REPLICAS; count += 1) {
      const spec = this.#specOf({ container, pod: template }, services, tag);
      const pod = new Pod(this.#engine, { spec, container, template });
      this.#pods.set(name, [...this.pods(name), pod]);
      await pod.start(this.hosts);
      await pod.untilReady(READY_TIMEOUT_MS);
      const replaced = old[count];
      if (replaced === undefined) continue;
      await replaced.stop();
      this.#pods.set(
        name,
        this.pods(name).filter((each) => each !== replaced),
      );
    }
  }

  /** Stops all pods and Services. @throws {FriendlyError} if a pod does not exit with 0 */
  async close(): Promise<void> {
    const pods = [...this.allPods];
    this.#pods.clear();
    const ended = await Promise.allSettled(pods.map((pod) => pod.stop()));
    await Promise.all([...this.#services.values()].map((proxy) => proxy.stop()));
    const failure = ended.find((each) => each.status === 'rejected');
    if (failure !== undefined) throw failure.reason as Error;
  }

  #specOf(
    { container, pod }: { container: Container; pod: PodSpec },
    objects: readonly KubernetesObject[],
    tag: string,
  ): ContainerSpec {
    this.#count += 1;
    const { limits = {} } = container.resources ?? {};
    const context = container.securityContext ?? {};
    const { runAsUser, runAsGroup } = pod.securityContext ?? {};
    const command = [...(container.command ?? []), ...(container.args ?? [])];
    const app = splitImage(container.image).repository.split('/').at(-1) ?? '';
    return {
      name: `${container.name}-${this.#count}`,
      image: imageOf(app, tag),
      command: command.length === 0 ? null : command,
      environment: containerEnvironment(container, objects, (secret, key) =>
        this.#secrets.get(`${secret}/${key}`),
      ).variables,
      network: { ip: this.#engine.nextAddress() },
      isReadOnly: context.readOnlyRootFilesystem ?? false,
      droppedCapabilities: context.capabilities?.drop ?? [],
      mayGainPrivileges: context.allowPrivilegeEscalation ?? true,
      ...(runAsUser === undefined ? {} : { user: `${runAsUser}:${runAsGroup ?? runAsUser}` }),
      ...(limits['memory'] === undefined ? {} : { memoryBytes: bytesOf(limits['memory']) }),
      ...(limits['cpu'] === undefined ? {} : { cpus: String(limits['cpu']) }),
    };
  }
}

function find(objects: readonly KubernetesObject[], kind: string, name: string): Workload {
  const found = workloads(objects).find(
    ({ object }) => object.kind === kind && object.metadata.name === name,
  );
  if (found === undefined) throw new FriendlyError(`There is no ${kind} ${name}.`);
  return found;
}
