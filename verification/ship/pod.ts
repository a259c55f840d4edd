import { setTimeout as delay } from 'node:timers/promises';
import type { IProbe } from 'kubernetes-models/v1/Probe';
import type { Container, PodSpec } from '#manifests/kubernetes-object.ts';
import { FriendlyError } from '#platform/errors.ts';
import type { Variables } from '#platform/state-folder.ts';
import { answersOk, eventually } from '#platform/waiting.ts';
import type { ContainerSpec, Engine } from './engine.ts';

/**
 * A pod of one container with the probes that its manifest asks for, asked from outside as the kubelet does.
 */
export class Pod {
  readonly name: string;
  readonly ip: string;
  readonly port: number;
  /** What it may have; 0: no limit. */
  readonly memoryBytes: number;
  isReady = false;
  /** From the start of the container to the first good answer of its readiness probe. */
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
    // A failure is kept for whoever waits for the pod, or ends it.
    void this.#watch(startedAtMs).catch((error: Error) => (this.#failure ??= error));
  }

  /** @throws {FriendlyError} with the end of the pod's log */
  async untilReady(timeoutMs: number): Promise<void> {
    const look = (): void => {
      if (this.#failure !== null) return;
      if (!this.isReady) throw new Error('not ready');
    };
    await eventually(look, { timeoutMs, intervalMs: 20 }).catch(
      () => (this.#failure ??= new Error('not ready in time')),
    );
    await this.#complain();
  }

  /**
   * Withdraws its endpoint, waits as its manifest says, and ends it.
   * @throws {FriendlyError} when it does not end in order, or was not well before
   */
  async stop(): Promise<void> {
    this.isReady = false;
    this.#stopped.abort();
    const pauseSeconds = this.#container.lifecycle?.preStop?.sleep?.seconds ?? 0;
    await delay(pauseSeconds * 1_000);
    await this.#complain();
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

  /** Startup first; then readiness, and liveness, which ends the pod here instead of starting it again. */
  async #watch(startedAtMs: number): Promise<void> {
    const { startupProbe, readinessProbe, livenessProbe } = this.#container;
    if (startupProbe !== undefined) await this.#until(startupProbe);
    const stayAlive = async (): Promise<void> => {
      if (livenessProbe !== undefined) await this.#repeat(livenessProbe, () => undefined);
    };
    const stayReady = async (): Promise<void> => {
      if (readinessProbe === undefined) return;
      await this.#repeat(readinessProbe, (isGood) => {
        if (isGood && this.readyAfterMs === 0) this.readyAfterMs = performance.now() - startedAtMs;
        this.isReady = isGood && !this.#stopped.signal.aborted;
      });
    };
    await Promise.all([stayAlive(), stayReady()]);
  }

  /** A startup probe: succeeds once, or fails for good. */
  async #until(probe: IProbe): Promise<void> {
    const { periodSeconds = 10, failureThreshold = 3 } = probe;
    for (let failures = 0; failures < failureThreshold; failures += 1) {
      if (await this.#ask(probe)) return;
      if (!(await this.#pause(periodSeconds))) return;
    }
    throw new Error('its startup probe failed');
  }

  /**
   * Tells what a probe says until the pod is stopped: good at once, bad after as many failures as it allows.
   */
  async #repeat(probe: IProbe, tell: (isGood: boolean) => void): Promise<void> {
    const { periodSeconds = 10, failureThreshold = 3 } = probe;
    let failures = 0;
    do {
      failures = (await this.#ask(probe)) ? 0 : failures + 1;
      if (failures === 0) tell(true);
      if (failures < failureThreshold) continue;
      tell(false);
      if (probe === this.#container.livenessProbe) throw new Error('its liveness probe failed');
    } while (await this.#pause(periodSeconds));
  }

  #ask({ httpGet }: IProbe): Promise<boolean> {
    const port = typeof httpGet?.port === 'string' ? this.#portOf(httpGet.port) : httpGet?.port;
    return answersOk(`http://${this.ip}:${String(port)}${httpGet?.path ?? ''}`)();
  }

  /** False when the pod is stopped meanwhile. */
  #pause(seconds: number): Promise<boolean> {
    return delay(seconds * 1_000, true, { signal: this.#stopped.signal }).catch(() => false);
  }

  async #complain(): Promise<void> {
    if (this.#failure === null) return;
    const log = await this.#engine.logs(this.#engine.container(this.name)).catch(String);
    throw new FriendlyError(`${this.name}: ${this.#failure.message}. Its log ends:\n${log.slice(-1_500)}`);
  }

  #portOf(name: string): number {
    return this.#container.ports?.find((port) => port.name === name)?.containerPort ?? 0;
  }
}
