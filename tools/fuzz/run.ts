import type { ServiceName } from '#platform/programs.ts';
import type { FuzzArguments } from './arguments.ts';
import { bytesOf, type FuzzRequest } from './fuzz-request.ts';
import type { Fixtures } from './generate/fixtures.ts';
import { makeRequest } from './generate/make-request.ts';
import { Connections, type Outcome } from './http/connections.ts';
import type { Ledger } from './ledger.ts';
import { Contract } from './oracle/contract.ts';
import { judge, type Secrets } from './oracle/judge.ts';
import { SERVICE_NAMES } from './platform.ts';

/** Longer than the services' own limits, so that they get to say what took too long. */
const HANG_MS = 20_000;
/** Passwords are slow to check on purpose; more at once than the service has threads for would be refused by design. */
const SLOW_OPERATION = /\/auth\/token\/user\b(?!\/)/i;
const SLOW_AT_ONCE = 2;

export interface RunOptions {
  readonly args: FuzzArguments;
  readonly fixtures: Fixtures;
  readonly secrets: Secrets;
  readonly ledger: Ledger;
  /** Told of each request that is done. */
  readonly observe?: (request: FuzzRequest, bytes: Buffer, outcome: Outcome) => void;
  /** True ends the run early. */
  readonly isOver: () => boolean;
}

/** Sends the run's requests, `concurrency` of them at once, and enters what became of each into the ledger. */
export async function sendAll({
  args,
  fixtures,
  secrets,
  ledger,
  observe,
  isOver,
}: RunOptions): Promise<void> {
  const contracts = byService((name) => new Contract(fixtures.documents[name]));
  const connections = byService((name) => new Connections(Number(fixtures.hosts[name].split(':')[1])));
  const slow = new Turnstile(SLOW_AT_ONCE);
  const numbers = (args.only ?? Array.from({ length: args.requests }, (_none, index) => index)).values();
  const work = async (): Promise<void> => {
    for (const number of numbers) {
      if (isOver()) return;
      const request = makeRequest(args.seed, number, fixtures);
      const bytes = bytesOf(request, fixtures.hosts[request.service]);
      const options = {
        isHead: request.method === 'HEAD',
        timeoutMs: HANG_MS,
        isAlone: request.raw !== null,
        closesWriting: request.raw?.isUnfinished ?? false,
      };
      const send = (): Promise<Outcome> => connections[request.service].send(bytes, options);
      const outcome = await (SLOW_OPERATION.test(request.target) ? slow.pass(send) : send());
      observe?.(request, bytes, outcome);
      const operation = contracts[request.service].operationId(request);
      ledger.enter(number, request, operation, outcome, judge(request, outcome, contracts, secrets));
    }
  };
  await Promise.all(Array.from({ length: args.only === null ? args.concurrency : 1 }, work));
  for (const name of SERVICE_NAMES) connections[name].close();
}

function byService<T>(make: (name: ServiceName) => T): Record<ServiceName, T> {
  return Object.fromEntries(SERVICE_NAMES.map((name) => [name, make(name)])) as Record<ServiceName, T>;
}

/** Lets a number of pieces of work go on at once; the rest wait in order. */
class Turnstile {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(places: number) {
    this.#free = places;
  }

  async pass<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
}
