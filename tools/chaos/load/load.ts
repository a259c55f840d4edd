import { randomUUID } from 'node:crypto';
import { Random } from '#platform/random.ts';
import type { TestPlatform } from '#platform/test-platform.ts';
import { republishChange } from '../published-messages.ts';
import { Caller, type LoadContext, repeatUntilStopped, Traffic } from './caller.ts';
import { type BusinessUnitChange, Journal, operationOf } from './journal.ts';
import { changeBusinessUnits, commandGeneration, createAndComplete, liveSchedules } from './tasks.ts';
import { holdSessions, revokeTokens, signIn } from './sessions.ts';

/** How many callers do what. */
const WORKERS: readonly [count: number, (context: LoadContext, worker: number) => Promise<void>][] = [
  [3, writeSettings],
  [3, holdSessions],
  [3, createAndComplete],
  [1, commandGeneration],
  [1, revokeTokens],
];

const LIVES = 2;

/** All callers of a run and what they have been told. */
export class Load {
  readonly journal: Journal;
  readonly traffic: Traffic;
  readonly context: LoadContext;
  readonly #stop: AbortController;
  readonly #lives = new AbortController();
  #workers: Promise<void>[] = [];
  #livesEnded: Promise<unknown> = Promise.resolve();

  private constructor(context: LoadContext, traffic: Traffic, stop: AbortController) {
    this.journal = context.journal;
    this.traffic = traffic;
    this.context = context;
    this.#stop = stop;
  }

  /** Callers that are signed in and do nothing yet. */
  static async prepare(platform: TestPlatform, seed: number): Promise<Load> {
    const stop = new AbortController();
    const random = new Random(seed);
    const traffic = new Traffic();
    const urls = {
      auth: platform.url('auth'),
      settings: platform.url('settings'),
      task: platform.url('task'),
      customers: platform.url('customers'),
    };
    const caller = new Caller(traffic, random, stop.signal);
    const context = { caller, journal: new Journal(), random, stop: stop.signal, urls, adminToken: '' };
    const tokens = await signIn(context);
    if (tokens === null) throw new Error('the load could not sign in');
    return new Load({ ...context, adminToken: tokens.accessToken }, traffic, stop);
  }

  /** All callers but those who change schedules. */
  start(platform: TestPlatform): void {
    const { context, journal } = this;
    const republish = async (change: BusinessUnitChange): Promise<void> => {
      // A repetition that does not get through does not count.
      await republishChange(platform, change).then(
        () => (journal.repeatedMessages += 1),
        () => undefined,
      );
    };
    this.#workers = WORKERS.flatMap(([count, work]) =>
      Array.from({ length: count }, (_, worker) => work(context, worker)),
    );
    this.#workers.push(changeBusinessUnits(context, republish));
    // finish() reports failures; until then they are not unhandled.
    for (const worker of this.#workers) worker.catch(() => undefined);
  }

  /** Schedules are changed from now on. */
  startLives(): void {
    const context = { ...this.context, stop: this.#lives.signal };
    const workers = Array.from({ length: LIVES }, (_, worker) => liveSchedules(context, worker));
    for (const worker of workers) worker.catch(() => undefined);
    this.#workers.push(...workers);
    this.#livesEnded = Promise.all(workers);
  }

  async finishLives(): Promise<void> {
    this.#lives.abort();
    await this.#livesEnded;
  }

  /** Lets every caller finish what it has begun. @throws what broke a worker */
  async finish(): Promise<void> {
    this.#lives.abort();
    this.#stop.abort();
    await Promise.all(this.#workers);
  }
}

const SHARED_NAMES = 3;
/** The workers of the run write under this subsystem and nobody else does. */
export const SUBSYSTEM = 'chaos';

/** Writes settings: by turns one that all writers fight over, and one of its own, which it also reads back. */
function writeSettings(context: LoadContext, worker: number): Promise<void> {
  const { caller, journal, random, urls, adminToken: token } = context;
  return repeatUntilStopped(context, async (count) => {
    const isOwn = count % 2 === 0;
    const name = isOwn ? `own-${worker}` : `shared-${random.integer(1, SHARED_NAMES)}`;
    const url = `${urls.settings}/platform/v1/subsystems/${SUBSYSTEM}/settings/${name}`;
    const value = `${worker}-${count}-${randomUUID()}`;
    const body = { settingValue: value };
    const idempotencyKey = randomUUID();
    const written = await caller.persist({ operation: 'PUT setting', url, token, idempotencyKey, body });
    journal.settings.push(operationOf(value, name, written));
    if (!isOwn || written.response === null) return;
    // Nobody else writes this setting, so whichever replica responds must know the last acknowledged value.
    const read = await caller.persist({ operation: 'GET setting value', url: `${url}/value`, token });
    if (read.response !== null && read.response.text !== JSON.stringify(value))
      journal.violations.push(`a read of ${name} did not return the value acknowledged before it`);
  });
}
