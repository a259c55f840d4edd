import { ServedServer } from './served-server';

/** A PostgreSQL of one suite's own, made to be crashed. It flushes as in production: what it acknowledged is on the disk. */
export class PrivatePostgresql {
  private constructor(private readonly served: ServedServer<{ url: string }>) {}

  /** @throws {Error} when it does not come up; its reasons are on standard error */
  static async start(): Promise<PrivatePostgresql> {
    return new PrivatePostgresql(await ServedServer.start('PostgreSQL', 'serve-postgresql.ts'));
  }

  /** Its superuser's address; the same after every restart. */
  get url(): string {
    return this.served.facts.url;
  }

  /** Ends every process of it with SIGKILL. */
  crash(): Promise<void> {
    return this.served.order('crash');
  }

  /** Starts it again after a crash, on the same data and port; it recovers before it lets anybody in. */
  restart(): Promise<void> {
    return this.served.order('start');
  }

  /** Ends it and removes its data. */
  stop(): Promise<void> {
    return this.served.stop();
  }
}
