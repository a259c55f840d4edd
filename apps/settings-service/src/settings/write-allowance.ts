import type { Metrics } from '@platform/service-defaults';
import { HOUR_MS } from '@platform/time';
import type { Clock } from '@platform/time';
import type { Counter } from 'prom-client';
import { SettingError } from './setting-error';

/**
 * Estimated bytes of a history entry besides its value: the row, and its entries in eight indexes including
 * the primary key.
 */
const ENTRY_BYTES = 1_024;
/** Maximum accounts in memory. A caller whose account is evicted starts with a full one. */
const MAX_CALLERS = 10_000;

interface Account {
  bytes: number;
  countedAtMs: number;
}

/** The part of its caller's allowance that one request uses. */
export interface Reservation {
  readonly caller: string;
  /**
   * Charges `entries` history entries with `valueBytes` bytes of values. Only the first call counts, so that
   * retries are free.
   * @throws {SettingError} `too-much-written`
   */
  take(entries: number, valueBytes: number): void;
  /** Refunds a request that wrote nothing. */
  giveBack(): void;
}

/**
 * Bounds the history that one caller writes at this replica. The history is never deleted, so a caller that
 * never stops would fill the disk. An account holds one hour's allowance and refills continuously over one
 * hour.
 */
export class WriteAllowance {
  /** In order of last use. */
  private readonly accounts = new Map<string, Account>();
  private readonly refusals: Counter;

  /** @param bytesPerHour allowance per caller; 0 means no limit */
  constructor(
    private readonly bytesPerHour: number,
    private readonly clock: Clock,
    metrics: Metrics,
  ) {
    this.refusals = metrics.counter(
      'settings_writes_refused_total',
      'Writes refused because their caller had used up its hourly allowance of history',
    );
  }

  /** Returns an empty reservation for one request of the caller. */
  reservationOf(caller: string): Reservation {
    let taken: number | null = null;
    return {
      caller,
      take: (entries, valueBytes) => {
        taken ??= this.take(caller, entries * ENTRY_BYTES + valueBytes);
      },
      giveBack: () => {
        const account = this.accounts.get(caller);
        if (account !== undefined) account.bytes = Math.min(this.bytesPerHour, account.bytes + (taken ?? 0));
        taken = 0;
      },
    };
  }

  private take(caller: string, bytes: number): number {
    if (this.bytesPerHour === 0) return 0;
    const account = this.accountOf(caller);
    // A request larger than the whole allowance passes if the account is full. It makes the balance negative.
    if (bytes > account.bytes && account.bytes < this.bytesPerHour) {
      this.refusals.inc();
      throw new SettingError('too-much-written');
    }
    account.bytes -= bytes;
    return bytes;
  }

  /** Returns the caller's account, refilled up to now. */
  private accountOf(caller: string): Account {
    const nowMs = this.clock.monotonicMs();
    const account = this.accounts.get(caller) ?? { bytes: this.bytesPerHour, countedAtMs: nowMs };
    const filled = ((nowMs - account.countedAtMs) / HOUR_MS) * this.bytesPerHour;
    account.bytes = Math.min(this.bytesPerHour, account.bytes + filled);
    account.countedAtMs = nowMs;
    // Reinserted at the end, so that eviction removes the least recently used account.
    this.accounts.delete(caller);
    this.accounts.set(caller, account);
    if (this.accounts.size > MAX_CALLERS) this.evictLeastRecent();
    return account;
  }

  private evictLeastRecent(): void {
    const [oldest] = this.accounts.keys();
    if (oldest !== undefined) this.accounts.delete(oldest);
  }
}
