import { setTimeout as delay } from 'node:timers/promises';
import { jsonRequest } from '#platform/callers.ts';
import type { FeedChange } from '#verification/audit/feeds.ts';
import type { Load } from '#verification/traffic/load.ts';
import { SUBSYSTEM } from '#verification/traffic/settings.ts';

const WAIT_SECONDS = 1;
const POLL_MS = 500;
/** Overlap of successive polls of the revocations. */
const OVERLAP_MS = 30_000;
const TIMEOUT_MS = 15_000;

/**
 * Two readers that follow the feeds through all faults, like clients that keep copies: they request a page
 * until they get it, then the next one.
 */
export class Followers {
  /** Changes of settings, in the order of reception. */
  readonly changes: FeedChange[] = [];
  /** Identifiers of revoked tokens. */
  readonly revocations = new Set<string>();
  readonly #load: Load;
  readonly #end = new AbortController();
  #ended: Promise<unknown> = Promise.resolve();

  private constructor(load: Load) {
    this.#load = load;
  }

  /** Starts both readers. They must see everything that is written from now on. */
  static async start(load: Load): Promise<Followers> {
    const followers = new Followers(load);
    const { next } = await followers.#changesAfter(null);
    followers.#ended = Promise.all([followers.#followSettings(next), followers.#followRevocations()]);
    // finish() reports rejections. This handler keeps them from being unhandled until then.
    followers.#ended.catch(() => undefined);
    return followers;
  }

  /**
   * Lets the readers read to the end. No caller may write any more.
   * @throws the error of a reader that failed
   */
  async finish(): Promise<void> {
    this.#end.abort();
    await this.#ended;
  }

  async #followSettings(first: string): Promise<void> {
    for (let after = first; ;) {
      const isEnding = this.#end.signal.aborted;
      const { changes, next } = await this.#changesAfter(after);
      this.changes.push(...changes);
      if (isEnding && changes.length === 0) return;
      after = next;
    }
  }

  /** @throws {Error} if the cursor is refused, or if there is no response for 90 s */
  async #changesAfter(after: string | null): Promise<{ changes: FeedChange[]; next: string }> {
    const { caller, urls, admin } = this.#load.context;
    const query = new URLSearchParams({ subsystem: SUBSYSTEM, waitSeconds: String(WAIT_SECONDS) });
    if (after !== null) query.set('after', after);
    const { response } = await caller.persist({
      operation: 'GET changes of settings',
      url: `${urls.settings}/platform/v1/changes?${query.toString()}`,
      token: admin.token,
      finalStatuses: [400, 410],
    });
    if (response?.status !== 200)
      throw new Error(`a reader of settings could not continue: ${response?.text ?? 'no response'}`);
    return JSON.parse(response.text) as { changes: FeedChange[]; next: string };
  }

  async #followRevocations(): Promise<void> {
    const seen: AsOf[] = [{ receivedAtMs: performance.now(), presentMs: Date.now() }];
    for (let isEnding = false; ;) {
      const page = await this.#revocationsSince(minDateAfter(seen)).catch(() => null);
      if (page !== null) {
        for (const { domain, identifier } of page.revocations)
          if (domain === 'jti') this.revocations.add(identifier);
        seen.push({ receivedAtMs: performance.now(), presentMs: page.presentMs });
        if (isEnding) return;
        isEnding = this.#end.signal.aborted;
      }
      await delay(POLL_MS);
    }
  }

  /** @throws {Error} on a timeout or an error status */
  async #revocationsSince(minDate: Date): Promise<{ revocations: Revocation[]; presentMs: number }> {
    const { urls, admin } = this.#load.context;
    const url = `${urls.auth}/auth/revocations?minDate=${minDate.toISOString()}`;
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const response = await fetch(url, { ...jsonRequest({ token: admin.token }), signal });
    const revocations = (await response.json()) as Revocation[];
    if (!response.ok) throw new Error(`the response to the list of revocations was ${response.status}`);
    return { revocations, presentMs: Date.parse(response.headers.get('revocations-as-of') ?? '') };
  }
}

interface Revocation {
  readonly domain: string;
  readonly identifier: string;
}

/** The server time of a response. Revocations are dated by the same clock. */
interface AsOf {
  /** Time of reception by the local monotonic clock. */
  readonly receivedAtMs: number;
  /** Server time, in ms since 1970. */
  readonly presentMs: number;
}

/**
 * The `minDate` of the next poll: 30 s before the lowest server time among the responses of the last 30 s and
 * the last response before them. The lowest, because the server's clock may step back.
 * @param seen oldest first; entries that are no longer needed are removed
 */
function minDateAfter(seen: AsOf[]): Date {
  const sinceMs = performance.now() - OVERLAP_MS;
  while ((seen[1]?.receivedAtMs ?? Infinity) < sinceMs) seen.shift();
  return new Date(Math.min(...seen.map(({ presentMs }) => presentMs)) - OVERLAP_MS);
}
