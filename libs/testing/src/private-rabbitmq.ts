import { ServedServer } from './served-server';

/** A RabbitMQ of one suite's own, made to be stopped, crashed and run out of memory. */
export class PrivateRabbitmq {
  private constructor(private readonly served: ServedServer<{ url: string; managementUrl: string }>) {}

  /** @throws {Error} when it does not come up; its reasons are on standard error */
  static async start(): Promise<PrivateRabbitmq> {
    return new PrivateRabbitmq(await ServedServer.start('RabbitMQ', 'serve-rabbitmq.ts'));
  }

  /** Its AMQP address, without a virtual host; the same after every restart. */
  get url(): string {
    return this.served.facts.url;
  }

  get managementUrl(): string {
    return this.served.facts.managementUrl;
  }

  /** Ends it in order. */
  shutDown(): Promise<void> {
    return this.served.order('stop');
  }

  /** Ends every process of it with SIGKILL. */
  crash(): Promise<void> {
    return this.served.order('crash');
  }

  /** Starts it again after its end, on the same data and ports. */
  restart(): Promise<void> {
    return this.served.order('start');
  }

  /** Raises its memory alarm: it takes no further message, and says so to whoever publishes one. */
  block(): Promise<void> {
    return this.served.order('block');
  }

  /** Clears its memory alarm. */
  unblock(): Promise<void> {
    return this.served.order('unblock');
  }

  /** Ends it and removes its data. */
  stop(): Promise<void> {
    return this.served.stop();
  }
}
