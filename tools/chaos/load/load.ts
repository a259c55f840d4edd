import { Random } from '#platform/random.ts';
import type { TestPlatform } from '#platform/test-platform.ts';
import { republishChange } from '../published-messages.ts';
import { Caller, type LoadContext, Traffic } from './caller.ts';
import { Journal } from './journal.ts';
import { holdSessions, revokeTokens, signIn } from './sessions.ts';
import { writeSettings } from './settings-writer.ts';
import { changeBusinessUnits, commandGeneration, createAndComplete } from './tasks.ts';

const SETTINGS_WRITERS = 3;
const SESSION_HOLDERS = 3;
const TASK_WORKERS = 3;
const COMMANDERS = 1;
const LOSS_RATE = 0.04;

/** All callers of a run and what they have been told. */
export class Load {
  readonly journal: Journal;
  readonly traffic: Traffic;
  readonly context: LoadContext;
  readonly #stop: AbortController;
  #workers: Promise<void>[] = [];

  private constructor(journal: Journal, traffic: Traffic, context: LoadContext, stop: AbortController) {
    this.journal = journal;
    this.traffic = traffic;
    this.context = context;
    this.#stop = stop;
  }

  /** Callers that are signed in and do nothing yet. */
  static async prepare(platform: TestPlatform, seed: number): Promise<Load> {
    const stop = new AbortController();
    const random = new Random(seed);
    const traffic = new Traffic();
    const caller = new Caller(traffic, random, { lossRate: LOSS_RATE, stop: stop.signal });
    const urls = {
      auth: platform.url('auth'),
      settings: platform.url('settings'),
      task: platform.url('task'),
      customers: platform.url('customers'),
    };
    const journal = new Journal();
    const context = { caller, journal, random, stop: stop.signal, urls, adminToken: '' };
    const tokens = await signIn(context);
    if (tokens === null) throw new Error('the load could not sign in');
    return new Load(journal, traffic, { ...context, adminToken: tokens.accessToken }, stop);
  }

  start(platform: TestPlatform): void {
    const { context } = this;
    const times = (count: number, work: (index: number) => Promise<void>): Promise<void>[] =>
      Array.from({ length: count }, (_, index) => work(index));
    const republish = async (change: Parameters<typeof republishChange>[1]): Promise<void> => {
      // A repetition that does not get through is none.
      await republishChange(platform, change).then(
        () => (this.journal.repeatedMessages += 1),
        () => undefined,
      );
    };
    this.#workers = [
      ...times(SETTINGS_WRITERS, (index) => writeSettings(context, index)),
      ...times(SESSION_HOLDERS, () => holdSessions(context)),
      ...times(TASK_WORKERS, (index) => createAndComplete(context, index)),
      ...times(COMMANDERS, (index) => commandGeneration(context, index)),
      revokeTokens(context),
      changeBusinessUnits(context, republish),
    ];
    // Whoever waits for finish() is told; until then a failure is not unhandled.
    for (const worker of this.#workers) worker.catch(() => undefined);
  }

  /** Lets everybody finish what they have begun. @throws what broke a worker */
  async finish(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#workers);
  }
}
