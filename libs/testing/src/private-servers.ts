import { makePostgresql, makeRabbitmq, openTemporaryPlace } from '#platform/private-servers.ts';
import type { Postgresql } from '#platform/postgresql.ts';
import type { Rabbitmq } from '#platform/rabbitmq.ts';

/** A PostgreSQL of one suite's own, made to be crashed. It flushes as in production: what it acknowledged is on the disk. */
export class PrivatePostgresql {
  private constructor(
    private readonly server: Postgresql,
    /** Ends it and removes its data. */
    readonly stop: () => Promise<void>,
  ) {}

  static async start(): Promise<PrivatePostgresql> {
    const place = await openTemporaryPlace();
    const server = await makePostgresql(place, true);
    await server.start();
    return new PrivatePostgresql(server, () => place.supervisor.stop());
  }

  /** Its superuser's address; the same after every restart. */
  get url(): string {
    return this.server.url;
  }

  /** Ends every process of it with SIGKILL. */
  crash(): Promise<void> {
    return this.server.crash();
  }

  /** Starts it again after a crash, on the same data and port; it recovers before it lets anybody in. */
  restart(): Promise<void> {
    return this.server.start();
  }
}

/** A RabbitMQ of one suite's own, made to be stopped, crashed and run out of memory. */
export class PrivateRabbitmq {
  private constructor(
    private readonly server: Rabbitmq,
    /** Ends it and removes its data. */
    readonly stop: () => Promise<void>,
  ) {}

  static async start(): Promise<PrivateRabbitmq> {
    const place = await openTemporaryPlace();
    const server = await makeRabbitmq(place);
    await server.start();
    return new PrivateRabbitmq(server, () => place.supervisor.stop());
  }

  /** Its AMQP address, without a virtual host; the same after every restart. */
  get url(): string {
    return this.server.url;
  }

  get managementUrl(): string {
    return this.server.managementUrl;
  }

  /** Ends it in order. */
  shutDown(): Promise<void> {
    return this.server.end('SIGTERM');
  }

  /** Ends every process of it with SIGKILL. */
  crash(): Promise<void> {
    return this.server.end('SIGKILL');
  }

  /** Starts it again after its end, on the same data and ports. */
  restart(): Promise<void> {
    return this.server.start();
  }

  /** Raises its memory alarm: it takes no further message, and says so to whoever publishes one. */
  block(): Promise<void> {
    // Every broker uses more than one byte. It sees the new limit at once.
    return this.server.control('set_vm_memory_high_watermark', 'absolute', '1');
  }

  /** Clears its memory alarm. */
  unblock(): Promise<void> {
    return this.server.control('set_vm_memory_high_watermark', '0.4');
  }
}
