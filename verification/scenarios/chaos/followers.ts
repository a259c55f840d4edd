import { setTimeout as delay } from 'node:timers/promises';
import { jsonRequest } from '#platform/callers.ts';
import type { ToldChange } from '#verification/audit/feeds.ts';
import type { Load } from '#verification/traffic/load.ts';
import { SUBSYSTEM } from '#verification/traffic/settings.ts';

const WAIT_SECONDS = 1;
const POLL_MS = 500;
/** A reader of revocations counts back so far. */
const OVERLAP_MS = 30_000;
const TIMEOUT_MS = 15_000;

/** Two readers who follow the feeds through everything, as those do who keep copies: a page is asked for
 *  until it has come, then the
 *  next one. */
export class Followers {
  /** Changes of settings, in the order in which they were told. */
  readonly changes: ToldChange[] = [];
  /** Identifiers of revoked tokens. */
  readonly revocations = new Set<string>();
  readonly #load: Load;
  readonly #end = new AbortController();
  #ended: Promise<unknown> = Promise.resolve();

  private constructor(load: Load) {
    this.#load = load;
  }

  /** Whatever is written from now on they are to be told of. */
  static async start(load: Load): Promise<Followers> {
    const followers = new Followers(load);
    const { next } = await followers.#changesAfter(null);
    followers.#ended = Promise.all([followers.#followSettings(next), followers.#followRevocations()]);
    // finish() reports failures; until then they are not unhandled.
    followers.#ended.catch(() => undefined);
    return followers;
  }

  /** Nobody writes any more: they read on to the end. @throws what broke one */
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

  /** @throws {Error} when the position is refused, or nothing comes for too long */
  async #changesAfter(after: string | null): Promise<{ changes: ToldChange[]; next: string }> {
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
      throw new Error(`a reader of settings could not go on: ${response?.text ?? 'no response'}`);
    return JSON.parse(response.text) as { changes: ToldChange[]; next: string };
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

  /** @throws {Error} unless it is answered in time */
  async #revocationsSince(minDate: Date): Promise<{ revocations: Revocation[]; presentMs: number }> {
    const { urls, admin } = this.#load.context;
    const url = `${urls.auth}/auth/revocations?minDate=${minDate.toISOString()}`;
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const response = await fetch(url, { ...jsonRequest({ token: admin.token }), signal });
    const revocations = (await response.json()) as Revocation[];
    if (!response.ok) throw new Error(`the list of revocations led to ${response.status}`);
    return { revocations, presentMs: Date.parse(response.headers.get('revocations-as-of') ?? '') };
  }
}

interface Revocation {
  readonly domain: string;
  readonly identifier: string;
}

/** The time of a response by the clock that dates revocations. */
interface AsOf {
  readonly receivedAtMs: number;
  readonly presentMs: number;
}

/**
 * Counts back from the lowest time seen within the overlap, or from the last one seen before. @param seen
 * forgets what is older
 */
function minDateAfter(seen: AsOf[]): Date {
  const sinceMs = performance.now() - OVERLAP_MS;
  while ((seen[1]?.receivedAtMs ?? Infinity) < sinceMs) seen.shift();
  return new Date(Math.min(...seen.map(({ presentMs }) => presentMs)) - OVERLAP_MS);
}
