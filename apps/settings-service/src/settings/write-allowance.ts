import type { Metrics } from '@platform/service-defaults';
import { HOUR_MS } from '@platform/time';
import type { Clock } from '@platform/time';
import type { Counter } from 'prom-client';
import { SettingError } from './setting-problems.filter';

/** What an entry of the history takes besides its value: the row and its entries in eight indexes, the
 *  primary key included. */
const ENTRY_BYTES = 1_024;
/** Callers that are remembered; one that is forgotten begins with a full account. */
const MAX_CALLERS = 10_000;

interface Account {
  bytes: number;
  countedAtMs: number;
}

/** What one request takes of what its caller may write. */
export interface Reservation {
  readonly caller: string;
  /**
   * Takes `entries` with values of so many bytes, once, however often the request is tried.
   * @throws {SettingError} `too-much-written`
   */
  take(entries: number, valueBytes: number): void;
  /** For a request that wrote nothing. */
  giveBack(): void;
}

/**
 * Bounds the history that one caller writes at this replica. History is kept for ever, so a caller who never
 * stops would fill the disk. An account holds what may be written in an hour, and refills over an hour.
 */
export class WriteAllowance {
  /** Those who wrote last come last. */
  private readonly accounts = new Map<string, Account>();
  private readonly refusals: Counter;

  /** @param bytesPerHour 0: no limit */
  constructor(
    private readonly bytesPerHour: number,
    private readonly clock: Clock,
    metrics: Metrics,
  ) {
    this.refusals = metrics.counter(
      'settings_writes_refused_total',
      'Writes refused because their caller writes history faster than one caller may',
    );
  }

  /** For one request of the caller. */
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
    // A full account lets one request through whose bytes exceed it, and is filled again from below zero.
    if (bytes > account.bytes && account.bytes < this.bytesPerHour) {
      this.refusals.inc();
      throw new SettingError('too-much-written');
    }
    account.bytes -= bytes;
    return bytes;
  }

  /** The caller's account as it is now. */
  private accountOf(caller: string): Account {
    const nowMs = this.clock.monotonicMs();
    const account = this.accounts.get(caller) ?? { bytes: this.bytesPerHour, countedAtMs: nowMs };
    const filled = ((nowMs - account.countedAtMs) / HOUR_MS) * this.bytesPerHour;
    account.bytes = Math.min(this.bytesPerHour, account.bytes + filled);
    account.countedAtMs = nowMs;
    // Moved to the end, so that the account used least recently is forgotten, never that of a busy writer.
    this.accounts.delete(caller);
    this.accounts.set(caller, account);
    if (this.accounts.size > MAX_CALLERS) this.forgetOldest();
    return account;
  }

  private forgetOldest(): void {
    const [oldest] = this.accounts.keys();
    if (oldest !== undefined) this.accounts.delete(oldest);
  }
}
