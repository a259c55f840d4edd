import type { Metrics } from '@platform/service-defaults';
import { HOUR_MS } from '@platform/time';
import type { Clock } from '@platform/time';
import type { Counter } from 'prom-client';
import { SettingError } from './setting-problems.filter';

/** What an entry of the history takes besides its value: the row and its entries in seven indexes. */
const ENTRY_BYTES = 1_024;
/** Callers that are remembered; one that is forgotten begins anew. */
const MAX_CALLERS = 10_000;

interface Account {
  bytes: number;
  countedAtMs: number;
}

/**
 * How much history one caller may write at this replica. The history is kept for ever, so whoever writes without end would fill the disk.
 * An account holds what may be written in an hour, and is filled again over an hour.
 */
export class WriteAllowance {
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

  /** Takes `entries` with values of so many bytes from the caller's account. @throws {SettingError} `too-much-written` */
  take(caller: string, entries: number, valueBytes: number): void {
    if (this.bytesPerHour === 0) return;
    const nowMs = this.clock.monotonicMs();
    const account = this.accountOf(caller, nowMs);
    const filled = ((nowMs - account.countedAtMs) / HOUR_MS) * this.bytesPerHour;
    account.bytes = Math.min(this.bytesPerHour, account.bytes + filled);
    account.countedAtMs = nowMs;
    const bytes = entries * ENTRY_BYTES + valueBytes;
    if (bytes > account.bytes) {
      this.refusals.inc();
      throw new SettingError('too-much-written');
    }
    account.bytes -= bytes;
  }

  private accountOf(caller: string, nowMs: number): Account {
    let account = this.accounts.get(caller);
    if (account === undefined) {
      account = { bytes: this.bytesPerHour, countedAtMs: nowMs };
      this.accounts.set(caller, account);
      const [oldest] = this.accounts.keys();
      if (this.accounts.size > MAX_CALLERS && oldest !== undefined) this.accounts.delete(oldest);
    }
    return account;
  }
}
