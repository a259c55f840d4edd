import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Interface } from 'node:readline';

const WORKSPACE = join(__dirname, '../../..');

/** A PostgreSQL of one suite's own, made to be crashed. It flushes as in production: what it acknowledged is on the disk. */
export class PrivatePostgresql {
  private constructor(
    private readonly server: ChildProcess,
    private readonly answers: AsyncIterator<string>,
    /** Its superuser's address; the same after every restart. */
    readonly url: string,
  ) {}

  /** @throws {Error} when it does not come up; its reasons are on standard error */
  static async start(): Promise<PrivatePostgresql> {
    // A process, not an import: the servers' code runs natively in Node and belongs to the workspace's tools.
    const node = join(WORKSPACE, 'node_modules/.bin/node');
    const server = spawn(node, [join(WORKSPACE, 'tools/infrastructure/serve-postgresql.ts')], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const lines: Interface = createInterface({ input: server.stdout });
    const answers = lines[Symbol.asyncIterator]();
    const { url } = JSON.parse(await nextLine(answers)) as { url: string };
    return new PrivatePostgresql(server, answers, url);
  }

  /** Ends every process of it with SIGKILL. */
  async crash(): Promise<void> {
    await this.order('crash');
  }

  /** Starts it again after a crash, on the same data and port; it recovers before it lets anybody in. */
  async restart(): Promise<void> {
    await this.order('start');
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
  if (done === true) throw new Error('the private PostgreSQL ended (see above)');
  return value;
}
