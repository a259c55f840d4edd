import { END_OF_EXAMPLE } from './examples';
import type { Example } from './examples';
import { RecordingProxy } from './recording-proxy';
import type { Exchange } from './recording-proxy';

/** Stands before services and notes which example asked them what. */
export class ExampleTraffic {
  private readonly proxies: RecordingProxy[] = [];
  private exchanges: Exchange[] = [];

  /** @returns the address to reach `target` at */
  async before(target: string): Promise<string> {
    const proxy = await RecordingProxy.start(target, (exchange) => this.exchanges.push(exchange));
    this.proxies.push(proxy);
    return proxy.url;
  }

  /** Forgets what went through so far, and gives it. */
  take(): Exchange[] {
    const taken = this.exchanges;
    this.exchanges = [];
    return taken.filter(({ path }) => !path.startsWith(END_OF_EXAMPLE));
  }

  /** What went through, by the heading of the example that did it. A request repeated within an example counts once: a feed polls.
   *  @param background calls that no example waits for, so that nobody can say where they belong; left out */
  callsByHeading(examples: readonly Example[], background: readonly string[] = []): Record<string, string[]> {
    const calls = new Map(examples.map(({ heading }) => [heading, new Set<string>()]));
    let number = 0;
    for (const exchange of this.exchanges) {
      if (exchange.path === `${END_OF_EXAMPLE}${String(number)}`) number += 1;
      else if (!background.includes(summary(exchange)))
        calls.get(examples[number]?.heading ?? '')?.add(summary(exchange));
    }
    if (number !== examples.length)
      throw new Error(`${String(number)} of ${String(examples.length)} examples ended`);
    return Object.fromEntries([...calls].map(([heading, made]) => [heading, [...made]]));
  }

  async stop(): Promise<void> {
    await Promise.all(this.proxies.map((proxy) => proxy.stop()));
  }
}

/** e.g. `POST /auth/token/user 401, reason 1` */
function summary({ method, path, status, body }: Exchange): string {
  const [pathname] = path.split('?');
  const reason = /"rejectionReason":(\d+)/.exec(body)?.[1];
  return `${method} ${pathname ?? ''} ${String(status)}${reason === undefined ? '' : `, reason ${reason}`}`;
}
