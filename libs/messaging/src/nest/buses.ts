import { Inject, Injectable, Logger, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import type { Bus } from '@platform/contracts';
import { CLOCK, HealthRegistry, ShutdownRegistry } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { BusRuntime } from '../bus-runtime';
import { MESSAGING_OPTIONS, type MessagingOptions } from './messaging-options';
import { MessagingMetrics } from './messaging-metrics';

const BUSES: readonly Bus[] = ['main', 'scheduling'];

/** The service's two buses: opened when the module starts, part of readiness, drained before HTTP closes and closed after it, since
 *  requests in flight may still publish. */
@Injectable()
export class Buses implements OnModuleInit, OnApplicationShutdown {
  private readonly runtimes: ReadonlyMap<Bus, BusRuntime>;
  private drained: Promise<void> | null = null;

  constructor(
    @Inject(MESSAGING_OPTIONS) readonly options: MessagingOptions,
    @Inject(CLOCK) clock: Clock,
    readonly counters: MessagingMetrics,
    private readonly health: HealthRegistry,
    private readonly shutdown: ShutdownRegistry,
  ) {
    const { service, namespace } = options;
    const logger = new Logger('messaging');
    const runtime = (bus: Bus): BusRuntime =>
      new BusRuntime({ bus, url: options[bus].url, service, namespace, logger, clock, counters });
    this.runtimes = new Map(BUSES.map((bus) => [bus, runtime(bus)]));
  }

  async onModuleInit(): Promise<void> {
    for (const [bus, runtime] of this.runtimes) {
      this.health.addReadinessCheck({ name: `bus-${bus}`, check: () => this.check(bus) });
      await runtime.open();
    }
    this.shutdown.addDrainHook({ name: 'message consumers', drain: () => this.drain() });
  }

  get(bus: Bus): BusRuntime {
    const runtime = this.runtimes.get(bus);
    if (runtime === undefined) throw new Error(`there is no bus ${bus}`);
    return runtime;
  }

  /** Stops consuming and waits for the deliveries in process; publishing goes on. */
  drain(): Promise<void> {
    this.drained ??= Promise.all([...this.runtimes.values()].map((runtime) => runtime.drain())).then(
      () => undefined,
    );
    return this.drained;
  }

  async onApplicationShutdown(): Promise<void> {
    await this.drain();
    await Promise.all([...this.runtimes.values()].map((runtime) => runtime.close()));
  }

  private check(bus: Bus): Promise<void> {
    const runtime = this.get(bus);
    if (!runtime.isUsable) return Promise.reject(new Error('not connected'));
    const [idle] = runtime.idleQueues;
    return idle === undefined
      ? Promise.resolve()
      : Promise.reject(new Error(`queue ${idle} is not consumed`));
  }
}
