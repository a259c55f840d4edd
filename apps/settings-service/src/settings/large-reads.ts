import type { Metrics } from '@platform/service-defaults';
import { SECOND_MS } from '@platform/time';
import type { Counter } from 'prom-client';
import { SettingError } from './setting-problems.filter';

/** Values that one response holds at most, in bytes, one value always goes through: 1,000 of the largest would be 256 MB. */
const MAX_PAGE_BYTES = 8 * 1024 * 1024;
/** What a read takes without waiting for its turn: nearly every one. */
const SMALL_PAGE_BYTES = 512 * 1024;

const LIMITS = { atOnce: 4, waiting: 64, waitMs: 5 * SECOND_MS };

/**
 * The memory that large responses of one replica take while they are read and built. Every response is first read with few bytes; where it
 * would hold more it takes its turn, four at once.
 */
export class LargeReads {
  private running = 0;
  private readonly waiting: (() => void)[] = [];
  private refusals: Counter | null = null;

  constructor(private readonly limits = LIMITS) {}

  /**
   * Reads a page, at most `MAX_PAGE_BYTES` of values.
   * @param read reads at most so many bytes
   * @param isCut whether more bytes would have brought more
   * @throws {SettingError} `too-many-large-reads`
   */
  async read<Page>(read: (bytes: number) => Promise<Page>, isCut: (page: Page) => boolean): Promise<Page> {
    const page = await read(SMALL_PAGE_BYTES);
    return isCut(page) ? this.inTurn(() => read(MAX_PAGE_BYTES)) : page;
  }

  reportTo(metrics: Metrics): void {
    metrics.sampledGauge(
      'settings_large_reads',
      'Responses over 512 KiB that are built or wait for it',
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

  private async inTurn<Page>(read: () => Promise<Page>): Promise<Page> {
    if (this.running >= this.limits.atOnce) await this.turn();
    else this.running += 1;
    try {
      return await read();
    } finally {
      // The next one takes over this one's place.
      const next = this.waiting.shift();
      if (next === undefined) this.running -= 1;
      else next();
    }
  }

  private turn(): Promise<void> {
    return new Promise((resolve, reject) => {
      const refuse = (): void => {
        this.refusals?.inc();
        reject(new SettingError('too-many-large-reads'));
      };
      if (this.waiting.length >= this.limits.waiting) return refuse();
      const start = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        this.waiting.splice(this.waiting.indexOf(start), 1);
        refuse();
      }, this.limits.waitMs);
      this.waiting.push(start);
    });
  }
}

const readsOf = new WeakMap<object, LargeReads>();

/** The large reads of a data source: those of all repositories count together. */
export function largeReadsOf(dataSource: object): LargeReads {
  let reads = readsOf.get(dataSource);
  if (reads === undefined) readsOf.set(dataSource, (reads = new LargeReads()));
  return reads;
}
