import type { Metrics } from '@platform/service-defaults';
import { SECOND_MS } from '@platform/time';
import type { Counter } from 'prom-client';
import { SettingError } from './setting-error';

/**
 * Maximum bytes of values in one response; a single larger value is still returned. Without it, 1,000 values
 * of the largest size would be 256 MB.
 */
const MAX_PAGE_BYTES = 8 * 1024 * 1024;
/**
 * Maximum bytes of values that a read returns without waiting for a slot. Nearly every response is smaller.
 */
const SMALL_PAGE_BYTES = 512 * 1024;

const LIMITS = { atOnce: 4, perCaller: 2, waiting: 64, waitMs: 5 * SECOND_MS };

interface Waiting {
  readonly caller: string;
  readonly start: () => void;
  readonly refuse: () => void;
}

/**
 * Bounds the memory that one replica uses for large responses. Every read first runs with a small byte limit.
 * If its response is cut, the read runs again with the large limit in one of four slots, at most two of them
 * per caller.
 *
 * A free slot goes to the caller with the fewest running reads. When the queue is full, a newcomer displaces
 * the last read of the caller with the most places in it. So no caller can keep others out.
 */
export class LargeReads {
  private running = 0;
  private readonly runningBy = new Map<string, number>();
  private readonly waiting: Waiting[] = [];
  private refusals: Counter | null = null;

  constructor(private readonly limits = LIMITS) {}

  /**
   * Reads a page of at most `MAX_PAGE_BYTES` of values.
   * @param caller receives the response
   * @param read reads a page of at most `bytes` bytes
   * @param isCut whether a higher byte limit would have returned more
   */
  async read<Page>(
    caller: string,
    read: (bytes: number) => Promise<Page>,
    isCut: (page: Page) => boolean,
  ): Promise<Page> {
    const page = await read(SMALL_PAGE_BYTES);
    return isCut(page) ? this.withSlot(caller, () => read(MAX_PAGE_BYTES)) : page;
  }

  reportTo(metrics: Metrics): void {
    metrics.sampledGauge(
      'settings_large_reads',
      'Responses over 512 KiB that are being built or wait to be built',
      ['state'],
      () => [
        { labels: { state: 'running' }, value: this.running },
        { labels: { state: 'waiting' }, value: this.waiting.length },
      ],
    );
    this.refusals = metrics.counter(
      'settings_large_reads_refused_total',
      'Responses over 512 KiB that were refused because too many were being built',
    );
  }

  private async withSlot<Page>(caller: string, read: () => Promise<Page>): Promise<Page> {
    if (this.running < this.limits.atOnce && this.mayBegin(caller)) this.begin(caller);
    else await this.waitForSlot(caller);
    try {
      return await read();
    } finally {
      this.end(caller);
    }
  }

  private begin(caller: string): void {
    this.running += 1;
    this.runningBy.set(caller, this.runningOf(caller) + 1);
  }

  private end(caller: string): void {
    this.running -= 1;
    const left = this.runningOf(caller) - 1;
    if (left === 0) this.runningBy.delete(caller);
    else this.runningBy.set(caller, left);
    this.next()?.start();
  }

  private runningOf(caller: string): number {
    return this.runningBy.get(caller) ?? 0;
  }

  private mayBegin(caller: string): boolean {
    return this.runningOf(caller) < this.limits.perCaller;
  }

  /**
   * Returns the longest-waiting read among the callers with the fewest running reads, without those at their
   * limit.
   */
  private next(): Waiting | undefined {
    const waiting = this.waiting.filter(({ caller }) => this.mayBegin(caller));
    const fewest = Math.min(...waiting.map(({ caller }) => this.runningOf(caller)));
    return waiting.find(({ caller }) => this.runningOf(caller) === fewest);
  }

  private waitForSlot(caller: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        clearTimeout(timer);
        this.waiting.splice(this.waiting.indexOf(waiting), 1);
      };
      const refuse = (): void => {
        this.refusals?.inc();
        reject(new SettingError('too-many-large-reads'));
      };
      const waiting: Waiting = {
        caller,
        start: () => {
          leave();
          this.begin(caller);
          resolve();
        },
        refuse: () => {
          leave();
          refuse();
        },
      };
      if (!this.makeRoom(caller)) return refuse();
      const timer = setTimeout(waiting.refuse, this.limits.waitMs);
      this.waiting.push(waiting);
    });
  }

  /**
   * Makes room in the queue for the caller. May refuse the last read of the caller with the most places.
   * @returns whether the caller may wait
   */
  private makeRoom(caller: string): boolean {
    if (this.waiting.length < this.limits.waiting) return true;
    const counts = new Map<string, number>();
    for (const each of this.waiting) counts.set(each.caller, (counts.get(each.caller) ?? 0) + 1);
    const most = Math.max(0, ...counts.values());
    if (most <= (counts.get(caller) ?? 0) + 1) return false;
    this.waiting.findLast((each) => counts.get(each.caller) === most)?.refuse();
    return true;
  }
}

const readsOf = new WeakMap<object, LargeReads>();

/** Returns the limiter of a data source, which all its repositories share. */
export function largeReadsOf(dataSource: object): LargeReads {
  let reads = readsOf.get(dataSource);
  if (reads === undefined) readsOf.set(dataSource, (reads = new LargeReads()));
  return reads;
}
