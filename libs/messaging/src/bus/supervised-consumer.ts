import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Nack } from '@golevelup/nestjs-rabbitmq';
import type { AmqpConnection } from '@golevelup/nestjs-rabbitmq';
import { fullJitterDelayMs } from '@platform/time';
import type { Channel, ConsumeMessage, Options } from 'amqplib';
import type { BusLink } from './bus-link';

type ChannelWrapper = AmqpConnection['managedChannel'];

/** What became of a delivery. `requeue` gives it back to the broker, to be delivered again. */
export type Settlement = 'ack' | 'requeue';

export interface ConsumerOptions {
  readonly queue: string;
  readonly queueOptions: Options.AssertQueue;
  /** Deliveries in process at one time. */
  readonly prefetch: number;
  /** Declares what the queue needs; must send all its commands before it first waits. */
  readonly declare: (channel: Channel) => Promise<void>;
  /** Must not reject. */
  readonly handle: (message: ConsumeMessage) => Promise<Settlement>;
}

const MAX_REOPEN_DELAY_MS = 10_000;

/** One golevelup subscriber on a channel of its own, reopened as long as it is wanted. golevelup alone recovers from a lost
 *  connection; a channel that died (its queue was declared differently, say) and a subscription that the broker cancelled (its
 *  queue was deleted or moved) stay dead. Here all three end the channel, and a new one is opened after a pause. */
export class SupervisedConsumer {
  private wrapper: ChannelWrapper | null = null;
  private reopenTimer: NodeJS.Timeout | undefined;
  private failures = 0;
  private consuming = false;
  private wanted = false;
  private readonly inFlight = new Set<Promise<unknown>>();
  private readonly channelName: string;
  private readonly consumerTag: string;

  constructor(
    private readonly link: BusLink,
    private readonly options: ConsumerOptions,
  ) {
    this.channelName = `consume ${options.queue}`;
    this.consumerTag = `${options.queue}#${randomUUID()}`;
  }

  get queue(): string {
    return this.options.queue;
  }

  get isConsuming(): boolean {
    return this.consuming;
  }

  start(): void {
    this.wanted = true;
    this.open();
  }

  /** No further deliveries; resolves when those in process are settled. */
  async drain(): Promise<void> {
    this.wanted = false;
    clearTimeout(this.reopenTimer);
    // A subscription that is still being set up would start to deliver later: without its channel it cannot.
    if (this.consuming) await this.cancel();
    else await this.discard();
    this.consuming = false;
    while (this.inFlight.size > 0) {
      await Promise.allSettled(this.inFlight);
      await nextTurn();
    }
  }

  /** Ends the channel; deliveries still in process go back to the broker. */
  async close(): Promise<void> {
    this.wanted = false;
    clearTimeout(this.reopenTimer);
    await this.discard();
  }

  /** Ends the channel and opens a new one, which declares everything again. */
  reopen(reason: string): void {
    void this.discard();
    if (!this.wanted || this.reopenTimer !== undefined) return;
    this.failures += 1;
    const delayMs = 50 + fullJitterDelayMs(this.failures, { baseMs: 100, maxMs: MAX_REOPEN_DELAY_MS });
    this.link.logger.debug?.(`consumer of ${this.queue}: ${reason}; opening a new channel in ${delayMs} ms`);
    this.reopenTimer = setTimeout(() => {
      this.reopenTimer = undefined;
      if (this.wanted) this.open();
    }, delayMs);
  }

  private open(): void {
    const wrapper = this.link.amqp.managedConnection.createChannel({ name: this.channelName });
    this.wrapper = wrapper;
    const onLost = (reason: string): void => {
      if (this.wrapper === wrapper) this.reopen(reason);
    };
    wrapper.on('error', (error: Error) => {
      this.link.logger.warn(`consumer of ${this.queue}: ${error.message}`);
      onLost('setting up failed');
    });
    // golevelup takes the channel of this name for the subscriber. Both calls must come before anything is awaited: as long as the
    // channel is not open, a failing set-up is an event of the wrapper; afterwards it would be an unhandled rejection.
    this.link.amqp.managedChannels[this.channelName] = wrapper;
    void wrapper.addSetup((channel: Channel) => this.setUp(channel, onLost));
    void this.subscribe(wrapper);
  }

  private async setUp(channel: Channel, onLost: (reason: string) => void): Promise<void> {
    channel.on('error', (error) => {
      this.link.logger.warn(`consumer of ${this.queue}: ${error.message}`);
    });
    channel.on('close', () => onLost('channel closed'));
    channel.on('cancel', () => onLost('cancelled by the broker'));
    await Promise.all([channel.prefetch(this.options.prefetch), this.options.declare(channel)]);
  }

  private async subscribe(wrapper: ChannelWrapper): Promise<void> {
    const consumerOptions = { consumerTag: this.consumerTag };
    const { queue, queueOptions } = this.options;
    await this.link.amqp.createSubscriber(
      (_body: unknown, message?: ConsumeMessage) => this.deliver(message),
      {
        queue,
        queueOptions: { ...queueOptions, channel: this.channelName, consumerOptions },
        // Reached when settling failed because the channel has gone: the broker delivers again by itself.
        errorHandler: (_channel, _message, error: Error) => {
          this.link.logger.debug?.(`consumer of ${queue}: not settled, ${error.message}`);
        },
      },
      queue,
    );
    if (this.wrapper !== wrapper) return;
    this.consuming = true;
    this.failures = 0;
  }

  private async deliver(message: ConsumeMessage | undefined): Promise<Nack | undefined> {
    if (message === undefined) return undefined;
    const handling = this.options.handle(message);
    this.inFlight.add(handling);
    const settlement = await handling;
    // One turn later, so that golevelup has settled the delivery before drain() sees it gone.
    setImmediate(() => this.inFlight.delete(handling));
    return settlement === 'requeue' ? new Nack(true) : undefined;
  }

  private async cancel(): Promise<void> {
    try {
      await this.link.amqp.cancelConsumer(this.consumerTag);
    } catch (error) {
      // The channel has gone, and the subscription with it.
      this.link.logger.debug?.(`consumer of ${this.queue}: not cancelled, ${String(error)}`);
    }
  }

  private async discard(): Promise<void> {
    const { wrapper } = this;
    this.wrapper = null;
    this.consuming = false;
    try {
      await wrapper?.close();
    } catch (error) {
      this.link.logger.debug?.(`consumer of ${this.queue}: closing, ${String(error)}`);
    }
  }
}
