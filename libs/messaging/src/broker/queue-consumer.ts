import { randomUUID } from 'node:crypto';
import { fullJitterDelayMs, SECOND_MS, withTimeout } from '@platform/time';
import type { Channel, ConsumeMessage } from 'amqplib';
import type { BusConnection, ManagedChannel } from './bus-connection';

/** How a delivery is settled. `requeue` returns it to the broker, which delivers it again. */
export type Settlement = 'ack' | 'requeue';

export interface QueueConsumerOptions {
  readonly queue: string;
  /** Maximum deliveries processed at the same time. */
  readonly prefetch: number;
  /** Declares what the queue needs. Must send all its commands before it first awaits. */
  readonly declare: (channel: Channel) => Promise<void>;
  /** Must not reject. */
  readonly handle: (message: ConsumeMessage) => Promise<Settlement>;
  /** Called when the broker did not set up the queue in time. The consumer retries unless it was closed. */
  readonly onSetUpTimeout?: () => void;
}

/**
 * Time limit for setting up a queue. A broker that was killed just after declaring a quorum queue may know
 * the queue's name but have lost its contents; it never responds for such a queue.
 */
const SET_UP_TIMEOUT_MS = 10 * SECOND_MS;

const MAX_REOPEN_DELAY_MS = 10_000;
/** Time without a consumer, while the bus is connected, after which a warning names the queue. */
const IDLE_WARNING_MS = 3_000;

/**
 * Consumes a queue on its own channel. The connection manager recovers only from a lost connection. It does
 * not recover a channel that died (because the queue exists with other arguments, for example) or a
 * subscription that the broker cancelled (because the queue was deleted or moved). This class handles all
 * three: it closes the channel, pauses, and opens a new one that declares everything again.
 */
export class QueueConsumer {
  private managed: ManagedChannel | null = null;
  /** The channel while the broker delivers on it, else null. */
  private channel: Channel | null = null;
  private reopenTimer: NodeJS.Timeout | undefined;
  private idleTimer: NodeJS.Timeout | undefined;
  private failures = 0;
  private isWanted = false;
  private hasConsumed = false;
  private startedAtMs = 0;
  private readonly inFlight = new Set<Promise<void>>();
  private readonly consumerTag: string;

  constructor(
    private readonly connection: BusConnection,
    private readonly options: QueueConsumerOptions,
  ) {
    this.consumerTag = `${options.queue}#${randomUUID()}`;
  }

  get queue(): string {
    return this.options.queue;
  }

  get isConsuming(): boolean {
    return this.channel !== null;
  }

  /** Whether the first set-up of the queue is under way and within its time limit. */
  get isStarting(): boolean {
    return (
      !this.hasConsumed && this.connection.options.clock.monotonicMs() - this.startedAtMs < SET_UP_TIMEOUT_MS
    );
  }

  start(): void {
    this.isWanted = true;
    this.startedAtMs = this.connection.options.clock.monotonicMs();
    this.open();
  }

  /** Stops deliveries; resolves when those in process are settled. */
  async drain(): Promise<void> {
    this.stop();
    const { channel } = this;
    this.channel = null;
    // A subscription that is still being set up is discarded, because it could start to deliver later.
    if (channel === null) await this.discard();
    else await this.tolerateLostChannel(() => channel.cancel(this.consumerTag));
    while (this.inFlight.size > 0) await Promise.all(this.inFlight);
  }

  /** Closes the channel. Deliveries still in process return to the broker. */
  async close(): Promise<void> {
    this.stop();
    await this.discard();
  }

  /** Closes the channel and, after a random delay, opens a new one that declares everything again. */
  reopen(reason: string): void {
    void this.discard();
    if (!this.isWanted || this.reopenTimer !== undefined) return;
    this.failures += 1;
    this.idleTimer ??= setInterval(() => {
      if (!this.connection.isUsable) return;
      this.warn(new Error(`the queue is not consumed: ${reason}`));
      clearInterval(this.idleTimer);
    }, IDLE_WARNING_MS).unref();
    const delayMs = 50 + fullJitterDelayMs(this.failures, { baseMs: 100, maxMs: MAX_REOPEN_DELAY_MS });
    this.debug(`${reason}; opening a new channel in ${delayMs} ms`);
    this.reopenTimer = setTimeout(() => {
      this.reopenTimer = undefined;
      if (this.isWanted) this.open();
    }, delayMs);
  }

  private stop(): void {
    this.isWanted = false;
    clearTimeout(this.reopenTimer);
    clearInterval(this.idleTimer);
  }

  private open(): void {
    const onLost = (reason: string): void => {
      if (this.managed === managed) this.reopen(reason);
    };
    const managed = this.connection.manageChannel(`consume ${this.queue}`, async (channel) => {
      await withTimeout(this.subscribe(channel, onLost), SET_UP_TIMEOUT_MS, () => {
        this.options.onSetUpTimeout?.();
        return new Error(`not set up within ${SET_UP_TIMEOUT_MS} ms`);
      });
      if (this.managed !== managed) return;
      this.channel = channel;
      this.hasConsumed = true;
      this.failures = 0;
      clearInterval(this.idleTimer);
      this.idleTimer = undefined;
    });
    this.managed = managed;
    managed.on('error', (error: Error) => {
      this.warn(error);
      onLost('setting up failed');
    });
  }

  private async subscribe(channel: Channel, onLost: (reason: string) => void): Promise<void> {
    channel.on('error', (error) => this.warn(error));
    channel.on('close', () => onLost('channel closed'));
    const { queue, prefetch, declare } = this.options;
    const deliver = (message: ConsumeMessage | null): void => {
      if (message === null) onLost('cancelled by the broker');
      else this.deliver(channel, message);
    };
    await Promise.all([
      channel.prefetch(prefetch),
      declare(channel),
      channel.consume(queue, deliver, { consumerTag: this.consumerTag }),
    ]);
  }

  private deliver(channel: Channel, message: ConsumeMessage): void {
    const settled = this.settle(channel, message).finally(() => this.inFlight.delete(settled));
    this.inFlight.add(settled);
  }

  private async settle(channel: Channel, message: ConsumeMessage): Promise<void> {
    const settlement = await this.options.handle(message);
    // If the channel is lost, the broker redelivers the message anyway.
    await this.tolerateLostChannel(() =>
      settlement === 'ack' ? channel.ack(message) : channel.nack(message, false, true),
    );
  }

  private async discard(): Promise<void> {
    const { managed } = this;
    this.managed = null;
    this.channel = null;
    await this.tolerateLostChannel(() => managed?.close());
  }

  private async tolerateLostChannel(work: () => unknown): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.debug(String(error));
    }
  }

  private warn(error: Error): void {
    this.connection.options.logger.warn(`consumer of ${this.queue}: ${error.message}`);
  }

  private debug(message: string): void {
    this.connection.options.logger.debug?.(`consumer of ${this.queue}: ${message}`);
  }
}
