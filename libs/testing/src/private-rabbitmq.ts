import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const WORKSPACE = join(__dirname, '../../..');

/** A RabbitMQ of one suite's own, made to be stopped, crashed and run out of memory. */
export class PrivateRabbitmq {
  private constructor(
    private readonly server: ChildProcess,
    private readonly answers: AsyncIterator<string>,
    /** Its AMQP address, without a virtual host; the same after every restart. */
    readonly url: string,
    readonly managementUrl: string,
  ) {}

  /** @throws {Error} when it does not come up; its reasons are on standard error */
  static async start(): Promise<PrivateRabbitmq> {
    // A process, not an import: the servers' code runs natively in Node and belongs to the workspace's tools.
    const node = join(WORKSPACE, 'node_modules/.bin/node');
    const server = spawn(node, [join(WORKSPACE, 'tools/infrastructure/serve-rabbitmq.ts')], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const answers = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
    const { url, managementUrl } = JSON.parse(await nextLine(answers)) as Record<
      'url' | 'managementUrl',
      string
    >;
    return new PrivateRabbitmq(server, answers, url, managementUrl);
  }

  /** Ends it in order. */
  async shutDown(): Promise<void> {
    await this.order('stop');
  }

  /** Ends every process of it with SIGKILL. */
  async crash(): Promise<void> {
    await this.order('crash');
  }

  /** Starts it again after its end, on the same data and ports. */
  async restart(): Promise<void> {
    await this.order('start');
  }

  /** Raises its memory alarm: it takes no further message, and says so to whoever publishes one. */
  async block(): Promise<void> {
    await this.order('block');
  }

  /** Clears its memory alarm. */
  async unblock(): Promise<void> {
    await this.order('unblock');
  }

  /** Ends it and removes its data. */
  async stop(): Promise<void> {
    const ended = once(this.server, 'exit');
    this.server.stdin?.end();
    await ended;
  }

  private async order(command: string): Promise<void> {
    this.server.stdin?.write(`${command}\n`);
    await nextLine(this.answers);
  }
}

async function nextLine(lines: AsyncIterator<string>): Promise<string> {
  const { done, value } = await lines.next();
  if (done === true) throw new Error('the private RabbitMQ ended (see above)');
  return value;
}
