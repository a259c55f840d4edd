import { setTimeout as delay } from 'node:timers/promises';
import type { IProbe } from 'kubernetes-models/v1/Probe';
import type { Container, PodSpec } from '#manifests/kubernetes-object.ts';
import { FriendlyError } from '#platform/errors.ts';
import type { Variables } from '#platform/state-folder.ts';
import { respondsOk, eventually } from '#platform/waiting.ts';
import type { ContainerSpec, Engine } from './engine.ts';

/** A pod of one container. Runs the probes of its manifest from outside, like the kubelet. */
export class Pod {
  readonly name: string;
  readonly ip: string;
  readonly port: number;
  /** Memory limit. 0: no limit. */
  readonly memoryBytes: number;
  isReady = false;
  /** Time from the start of the container to the first success of its readiness probe. */
  readyAfterMs = 0;
  readonly #engine: Engine;
  readonly #spec: ContainerSpec;
  readonly #container: Container;
  readonly #graceSeconds: number;
  readonly #stopped = new AbortController();
  #failure: Error | null = null;

  constructor(
    engine: Engine,
    { spec, container, template }: { spec: ContainerSpec; container: Container; template: PodSpec },
  ) {
    this.#engine = engine;
    this.#spec = spec;
    this.#container = container;
    this.#graceSeconds = template.terminationGracePeriodSeconds ?? 30;
    this.name = spec.name;
    this.ip = 'ip' in spec.network ? spec.network.ip : '';
    this.memoryBytes = spec.memoryBytes ?? 0;
    this.port = this.#portOf('http');
  }

  async start(hosts: Variables): Promise<void> {
    const startedAtMs = performance.now();
    await this.#engine.start(this.#spec, hosts);
    // untilReady() and stop() throw the failure.
    void this.#watch(startedAtMs).catch((error: Error) => (this.#failure ??= error));
  }

  /**
   * Waits until the pod is ready.
   * @throws {FriendlyError} with the end of its log, on a failure or a timeout
   */
  async untilReady(timeoutMs: number): Promise<void> {
    const expectReady = (): void => {
      if (this.#failure !== null) return;
      if (!this.isReady) throw new Error('not ready');
    };
    await eventually(expectReady, { timeoutMs, intervalMs: 20 }).catch(
      () => (this.#failure ??= new Error('not ready in time')),
    );
    await this.#throwFailure();
  }

  /**
   * Removes the pod from its Service, waits for its preStop sleep, and stops it.
   * @throws {FriendlyError} if it does not exit with 0, or if a probe failed before
   */
  async stop(): Promise<void> {
    this.isReady = false;
    this.#stopped.abort();
    const pauseSeconds = this.#container.lifecycle?.preStop?.sleep?.seconds ?? 0;
    await delay(pauseSeconds * 1_000);
    await this.#throwFailure();
    const exitCode = await this.#engine.stop(
      this.#engine.container(this.name),
      this.#graceSeconds - pauseSeconds,
    );
    if (exitCode !== 0) throw new FriendlyError(`${this.name} ended with ${exitCode}.`);
  }

  async metric(name: string): Promise<number> {
    const text = await (await fetch(`http://${this.ip}:${this.#portOf('metrics')}/metrics`)).text();
    return Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(text)?.[1]);
  }

  /**
   * Runs the startup probe, then readiness and liveness. A failed liveness probe fails the pod instead of
   * restarting it.
   */
  async #watch(startedAtMs: number): Promise<void> {
    const { startupProbe, readinessProbe, livenessProbe } = this.#container;
    if (startupProbe !== undefined) await this.#untilStarted(startupProbe);
    const stayAlive = async (): Promise<void> => {
      if (livenessProbe !== undefined) await this.#repeatProbe(livenessProbe, () => undefined);
    };
    const stayReady = async (): Promise<void> => {
      if (readinessProbe === undefined) return;
      await this.#repeatProbe(readinessProbe, (isGood) => {
        if (isGood && this.readyAfterMs === 0) this.readyAfterMs = performance.now() - startedAtMs;
        this.isReady = isGood && !this.#stopped.signal.aborted;
      });
    };
    await Promise.all([stayAlive(), stayReady()]);
  }

  /** Runs a startup probe until it succeeds. @throws {Error} after its number of allowed failures */
  async #untilStarted(probe: IProbe): Promise<void> {
    const { periodSeconds = 10, failureThreshold = 3 } = probe;
    for (let failures = 0; failures < failureThreshold; failures += 1) {
      if (await this.#probe(probe)) return;
      if (!(await this.#pause(periodSeconds))) return;
    }
    throw new Error('its startup probe failed');
  }

  /**
   * Runs a probe until the pod stops. Reports a success at once, and a failure only after `failureThreshold`
   * in a row.
   */
  async #repeatProbe(probe: IProbe, report: (isGood: boolean) => void): Promise<void> {
    const { periodSeconds = 10, failureThreshold = 3 } = probe;
    let failures = 0;
    do {
      failures = (await this.#probe(probe)) ? 0 : failures + 1;
      if (failures === 0) report(true);
      if (failures < failureThreshold) continue;
      report(false);
      if (probe === this.#container.livenessProbe) throw new Error('its liveness probe failed');
    } while (await this.#pause(periodSeconds));
  }

  #probe({ httpGet }: IProbe): Promise<boolean> {
    const port = typeof httpGet?.port === 'string' ? this.#portOf(httpGet.port) : httpGet?.port;
    return respondsOk(`http://${this.ip}:${String(port)}${httpGet?.path ?? ''}`)();
  }

  /** Waits. Returns false if the pod is stopped during the wait. */
  #pause(seconds: number): Promise<boolean> {
    return delay(seconds * 1_000, true, { signal: this.#stopped.signal }).catch(() => false);
  }

  async #throwFailure(): Promise<void> {
    if (this.#failure === null) return;
    const log = await this.#engine.logs(this.#engine.container(this.name)).catch(String);
    throw new FriendlyError(`${this.name}: ${this.#failure.message}. Its log ends:\n${log.slice(-1_500)}`);
  }

  #portOf(name: string): number {
    return this.#container.ports?.find((port) => port.name === name)?.containerPort ?? 0;
  }
}
