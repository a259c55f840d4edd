import { commandLine, someOf, textTable, wholeNumber } from '#platform/command-line.ts';
import { ApiContract } from '#platform/api-contract.ts';
import { SERVICE_NAMES, type ServiceName } from '#platform/programs.ts';
import { Random } from '#platform/random.ts';
import type { SecretScanner } from '#platform/secret-scan.ts';
import type { Fixtures, Operation } from './fixtures.ts';
import { requestOf, validDraft } from './generate/draft.ts';
import { makeRequest } from './generate/requests.ts';
import {
  bytesOf,
  Connections,
  type FuzzRequest,
  type Outcome,
  REQUEST_KINDS,
  type RequestKind,
} from './http.ts';
import { judge } from './judge.ts';
import { CANNOT_SUCCEED, nameOf } from './success.ts';

export interface FuzzArguments {
  readonly requests: number;
  readonly seed: number;
  readonly services: readonly ServiceName[];
  /**
   * Sends only these requests of the run, in order, and shows requests and responses. Null: the whole run.
   */
  readonly only: readonly number[] | null;
  /**
   * Number of requests of the run to send before and after each request of `only`, at the concurrency of the
   * run. Some findings depend on other requests in flight.
   */
  readonly neighbours: number;
  readonly concurrency: number;
  readonly build: boolean;
  readonly logLevel: string;
}

const DESCRIPTION = `Starts the built platform in production mode on its own servers and sends valid, nearly valid, malformed, random and
hostile requests to every operation of the OpenAPI documents. No response may be 500 or above, missing, undocumented or contain a secret; no
hostile token may be accepted; no process may end or use more than 1 GB. Exits with 1 if one of these happened.`;

/** Parses the command line. @throws {ArgumentsError} @param randomSeed used without --seed */
export function parseFuzzArguments(args: readonly string[], randomSeed: number): FuzzArguments {
  const {
    service,
    only = null,
    ...rest
  } = commandLine('npm run fuzz', '[options]', DESCRIPTION)
    .option('--requests <n>', 'number of requests', wholeNumber, 10_000)
    .option(
      '--seed <n>',
      'the same seed sends the same requests; by default random and printed',
      wholeNumber,
      randomSeed,
    )
    .option(
      '--service <name>',
      `only this service's operations: ${SERVICE_NAMES.join(', ')}`,
      someOf(SERVICE_NAMES),
    )
    .option('--only <n,…>', 'only these requests of the run; shows requests and responses', wholeNumbers)
    .option(
      '--neighbours <n>',
      'with --only: number of requests to send before and after each, at the concurrency of the run',
      wholeNumber,
      0,
    )
    .option('--concurrency <n>', 'requests in flight', wholeNumber, 24)
    .option('--log-level <level>', 'log level of the services', 'info')
    .option('--no-build', 'test the existing build')
    .parse([...args], { from: 'user' })
    .opts<Omit<FuzzArguments, 'services'> & { service?: ServiceName[] }>();
  return { ...rest, only, services: service ?? SERVICE_NAMES };
}

function wholeNumbers(list: string): number[] {
  return list.split(',').map(wholeNumber);
}

/**
 * Timeout of a request in ms. It is longer than the services' own timeouts, so that a service can report its
 * timeout first.
 */
const HANG_MS = 40_000;
/**
 * Checks of passwords are deliberately slow. The service queues a limited number of them and refuses the
 * rest, so the fuzzer sends at most two at a time.
 */
const SLOW_OPERATION = /\/auth\/token\/user\b(?!\/)/i;
const SLOW_CONCURRENCY = 2;
/** Maximum number of additional valid requests to an operation that has not succeeded yet. */
const ATTEMPTS = 300;
/** The number of a finding that `--only` cannot repeat. */
export const NOT_NUMBERED = -1;

export interface RunOptions {
  readonly args: FuzzArguments;
  readonly fixtures: Fixtures;
  /** Finds secrets that no response may contain. */
  readonly configured: SecretScanner;
  readonly ledger: Ledger;
  /** Called after each request that `only` names. */
  readonly observe?: (request: FuzzRequest, bytes: Buffer, outcome: Outcome) => void;
  /** True ends the run early. */
  readonly isOver: () => boolean;
}

/**
 * Sends the run's requests, `concurrency` at a time, and records each outcome in the ledger. A whole run then
 * sends additional valid requests to operations that have not succeeded yet.
 */
export async function sendAll(options: RunOptions): Promise<void> {
  const { args, fixtures, ledger, observe, isOver } = options;
  const { send, close } = openSender(options);
  const numbers = numbersOf(args).values();
  const isShown = new Set(args.only);
  const work = async (): Promise<void> => {
    for (const number of numbers) {
      if (isOver()) return;
      const request = makeRequest(args.seed, number, fixtures);
      const { bytes, outcome } = await send(number, request);
      if (isShown.has(number)) observe?.(request, bytes, outcome);
    }
  };
  const isSequential = args.only !== null && args.neighbours === 0;
  await Promise.all(Array.from({ length: isSequential ? 1 : args.concurrency }, work));
  if (args.only === null) {
    for (const operation of fixtures.operations) {
      for (let attempt = 1; attempt <= ATTEMPTS && mayStillSucceed(operation, ledger); attempt += 1) {
        if (isOver()) break;
        const random = Random.ofStream(args.seed, args.requests + attempt);
        await send(NOT_NUMBERED, requestOf(validDraft(operation, fixtures, random), 'valid', ''));
      }
    }
  }
  close();
}

interface Sender {
  /** Sends a request, judges the outcome and records it in the ledger. */
  readonly send: (number: number, request: FuzzRequest) => Promise<{ bytes: Buffer; outcome: Outcome }>;
  readonly close: () => void;
}

function openSender({ fixtures, configured, ledger }: RunOptions): Sender {
  const contracts = byService((name) => new ApiContract(fixtures.documents[name]));
  const connections = byService((name) => new Connections(Number(fixtures.hosts[name].split(':')[1])));
  const limited = makeLimiter(SLOW_CONCURRENCY);
  return {
    send: async (number, request) => {
      const bytes = bytesOf(request, fixtures.hosts[request.service]);
      const options = {
        isHead: request.method === 'HEAD',
        timeoutMs: HANG_MS,
        isSingle: request.raw !== null,
        closesWriting: request.raw?.isUnfinished ?? false,
      };
      const send = (): Promise<Outcome> => connections[request.service].send(bytes, options);
      const outcome = await (SLOW_OPERATION.test(request.target) ? limited(send) : send());
      const operation = contracts[request.service].operationId(request);
      ledger.enter(number, request, operation, outcome, judge(request, outcome, contracts, configured));
      return { bytes, outcome };
    },
    close: () => {
      for (const name of SERVICE_NAMES) connections[name].close();
    },
  };
}

function mayStillSucceed(operation: Operation, { succeeded }: Ledger): boolean {
  const name = nameOf(operation);
  return !succeeded.has(name) && !CANNOT_SUCCEED.has(name);
}

/** Returns the numbers of the requests to send, ascending and without duplicates. */
export function numbersOf({ only, neighbours, requests }: FuzzArguments): number[] {
  if (only === null) return Array.from({ length: requests }, (_none, index) => index);
  const wanted = only.flatMap((number) =>
    Array.from({ length: 2 * neighbours + 1 }, (_none, offset) => number - neighbours + offset),
  );
  return [...new Set(wanted.filter((number) => number >= 0))].sort((one, other) => one - other);
}

function byService<T>(make: (name: ServiceName) => T): Record<ServiceName, T> {
  return Object.fromEntries(SERVICE_NAMES.map((name) => [name, make(name)])) as Record<ServiceName, T>;
}

/** Returns a function that limits concurrency: work is queued in turn in `count` lanes. */
function makeLimiter(count: number): <T>(work: () => Promise<T>) => Promise<T> {
  const lanes = Array.from({ length: count }, (): Promise<unknown> => Promise.resolve());
  return (work) => {
    const done = (lanes.shift() ?? Promise.resolve()).then(work);
    lanes.push(done.catch(() => undefined));
    return done;
  };
}

/** A violation, the number of its occurrences, and the first request that shows it. */
export interface Finding {
  readonly what: string;
  readonly where: string;
  readonly firstNumber: number;
  readonly trick: string;
  count: number;
}

interface Row {
  sent: number;
  readonly statuses: Map<string, number>;
  slowestMs: number;
}

/** Counts outcomes. Equal findings at one operation are one finding. */
export class Ledger {
  readonly #rows = new Map<RequestKind, Row>();
  readonly #findings = new Map<string, Finding>();
  /** Operations that succeeded at least once, by service and id. */
  readonly succeeded = new Set<string>();
  readonly #onNew: (finding: Finding) => void;
  sent = 0;

  /** @param onNew called with each finding at its first occurrence */
  constructor(onNew: (finding: Finding) => void = () => undefined) {
    this.#onNew = onNew;
  }

  enter(
    number: number,
    request: FuzzRequest,
    operation: string | null,
    outcome: Outcome,
    violations: readonly string[],
  ): void {
    this.sent += 1;
    const row = this.#rows.get(request.kind) ?? {
      sent: 0,
      statuses: new Map<string, number>(),
      slowestMs: 0,
    };
    this.#rows.set(request.kind, row);
    row.sent += 1;
    row.slowestMs = Math.max(row.slowestMs, outcome.tookMs);
    const status = outcome.kind === 'responded' ? String(outcome.response.status) : outcome.kind;
    row.statuses.set(status, (row.statuses.get(status) ?? 0) + 1);
    const where = `${request.service} ${operation ?? 'elsewhere'}`;
    // HEAD does not count: it does not execute the operation.
    if (/^[23]/.test(status) && request.method !== 'HEAD') this.succeeded.add(where);
    for (const what of violations)
      this.add({ what, where: `${where} (${request.kind})`, firstNumber: number, trick: request.trick });
  }

  add(finding: Omit<Finding, 'count'>): void {
    const key = `${finding.where} ${finding.what}`;
    const known = this.#findings.get(key);
    if (known !== undefined) {
      known.count += 1;
      return;
    }
    const made = { ...finding, count: 1 };
    this.#findings.set(key, made);
    this.#onNew(made);
  }

  get findings(): readonly Finding[] {
    return [...this.#findings.values()];
  }

  /** One line for each kind: requests sent, statuses, duration of the slowest. */
  table(): string {
    const rows = REQUEST_KINDS.flatMap((kind) => {
      const row = this.#rows.get(kind);
      if (row === undefined) return [];
      const statuses = [...row.statuses].sort(([one], [other]) => one.localeCompare(other));
      const responses = statuses.map(([status, count]) => `${status} × ${count}`).join('  ');
      return [[kind, String(row.sent), `${(row.slowestMs / 1_000).toFixed(1)} s`, responses]];
    });
    return textTable(['kind', 'sent', 'slowest', 'responses'], rows).join('\n');
  }
}
