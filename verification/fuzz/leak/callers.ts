import { makeAccessToken } from '#platform/callers.ts';
import { Random } from '#platform/random.ts';
import type { TestPlatform } from '#platform/test-platform.ts';
import { Caller, Traffic } from '#verification/traffic/caller.ts';
import { KeepAliveConnections } from '#verification/traffic/connections.ts';
import { DEMO_APPLICATION } from '#verification/traffic/context.ts';
import { type ErrandContext, runErrand } from '#verification/traffic/errands.ts';
import { Journal } from '#verification/traffic/journal.ts';
import { PERSONAS } from '../fixtures.ts';

const CONCURRENCY = 12;
/** Capacity of each service's cache of verified tokens. */
const CACHED_TOKENS = 5_000;

/**
 * Workers that run errands as fast as possible. Every request must get an expected response: a run whose
 * requests were refused by a quota would overstate its traffic.
 */
export class Callers {
  readonly traffic = new Traffic();
  readonly #connections = new KeepAliveConnections();
  readonly #context: Omit<ErrandContext, 'random'>;

  constructor(platform: TestPlatform) {
    this.traffic.isStrict = true;
    const { signal: stop } = new AbortController();
    this.#context = {
      caller: new Caller({
        traffic: this.traffic,
        random: new Random(0),
        stop,
        losesResponses: false,
        connections: this.#connections,
      }),
      journal: new Journal(),
      kinds: [],
      stop,
      urls: {
        auth: platform.url('auth'),
        settings: platform.url('settings'),
        task: platform.url('task'),
        customers: platform.url('customers'),
      },
      application: DEMO_APPLICATION,
      admin: {
        get token() {
          return makeAccessToken(platform.settings);
        },
      },
      tokenOf: (persona) => makeAccessToken(platform.settings, PERSONAS[persona]),
    };
  }

  get sent(): number {
    return this.traffic.attempts;
  }

  /**
   * Fills the services' caches of verified tokens before the run. Each request of this traffic has a new
   * token, so the caches would otherwise grow during the run and hide leaks.
   */
  async fill(): Promise<void> {
    const { caller, urls, admin } = this.#context;
    const targets = [
      ['GET revocation', `${urls.auth}/auth/revocations/jti/none`],
      ['GET no setting', `${urls.settings}/platform/v1/subsystems/none/settings/none`],
      ['GET triggers', `${urls.task}/Triggers?pageSize=1`],
    ] as const;
    const numbers = Array.from({ length: CACHED_TOKENS }, (_none, index) => index).values();
    await this.#together(async () => {
      for (const _number of numbers) {
        for (const [operation, url] of targets)
          await caller.persist({ operation, url, token: admin.token, finalStatuses: [404] });
      }
    });
  }

  /** Runs errands until `until` requests were sent in total, then closes idle connections. */
  async sendRound(until: number, seed: number, round: number): Promise<void> {
    await this.#together(async (worker) => {
      const context = { ...this.#context, random: Random.ofStream(seed, round * 1_000 + worker) };
      while (this.sent < until) await runErrand(context);
    });
    this.#connections.closeIdle();
  }

  /** Counts of statuses, e.g. `200 × 30000  404 × 12`. */
  statuses(): string {
    const counts = new Map<string, number>();
    for (const [key, count] of this.traffic.outcomes) {
      const [, outcome = ''] = key.split(' · ');
      counts.set(outcome, (counts.get(outcome) ?? 0) + count);
    }
    return [...counts]
      .sort()
      .map(([outcome, count]) => `${outcome} × ${count}`)
      .join('  ');
  }

  /** Runs all workers. @throws {Error} if a request got an unexpected response */
  async #together(work: (worker: number) => Promise<void>): Promise<void> {
    await Promise.all(Array.from({ length: CONCURRENCY }, (_none, worker) => work(worker)));
    const [first] = this.traffic.unexpected;
    if (first === undefined) return;
    const { operation, outcome, detail } = first;
    throw new Error(`${this.traffic.unexpectedCount} failures: ${operation} led to ${outcome}: ${detail}`);
  }
}
