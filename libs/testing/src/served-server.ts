import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const WORKSPACE = join(__dirname, '../../..');

/** A server that a program of `tools/platform` holds and breaks on request: a line in is an order, a line out says that it is done. */
export class ServedServer<Facts extends object> {
  private constructor(
    private readonly name: string,
    private readonly server: ChildProcess,
    private readonly answers: AsyncIterator<string>,
  ) {}

  /** What the program told when the server was up. */
  facts!: Facts;

  /** @param program a file of `tools/platform` @throws {Error} when it does not come up; its reasons are on standard error */
  static async start<Facts extends object>(name: string, program: string): Promise<ServedServer<Facts>> {
    // A process, not an import: the servers' code runs natively in Node and belongs to the workspace's tools.
    const node = join(WORKSPACE, 'node_modules/.bin/node');
    const server = spawn(node, [join(WORKSPACE, 'tools/platform', program)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const answers = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
    const served = new ServedServer<Facts>(name, server, answers);
    served.facts = JSON.parse(await served.nextLine()) as Facts;
    return served;
  }

  async order(command: string): Promise<void> {
    this.server.stdin?.write(`${command}\n`);
    await this.nextLine();
  }

  /** Ends it and removes its data. */
  async stop(): Promise<void> {
    const ended = once(this.server, 'exit');
    this.server.stdin?.end();
    await ended;
  }

  private async nextLine(): Promise<string> {
    const { done, value } = await this.answers.next();
    if (done === true) throw new Error(`the private ${this.name} ended (see above)`);
    return value;
  }
}
