import { SLOT_BOUNDS, Slots, isLockTimeout } from '@platform/database';
import type { Share, SlotBound } from '@platform/database';
import type { Metrics } from '@platform/service-defaults';
import { SECOND_MS } from '@platform/time';
import { SettingError } from './setting-error';
import type { SettingKey } from './setting-key';
import { settingKeyText } from './setting-key';

/**
 * Maximum wait of a write for a lock without a slot. It suffices for the locks that other single writes hold.
 */
export const SHORT_LOCK_WAIT_MS = 20;
/**
 * Maximum wait of a write for a lock in a slot, and of a restoration for each lock statement of up to 1,000
 * settings.
 */
export const LOCK_WAIT_MS = 2 * SECOND_MS;

const RESTORATIONS_AT_ONCE = 2;
const RESTORATIONS_PER_CALLER = 1;
const RESTORATIONS_WAITING = { perShare: 2, inAll: 10 };
/** Divisor of the pool size: writes that wait for a lock may hold this fraction of the connections. */
const LOCK_WAIT_POOL_DIVISOR = 4;
const LOCK_WAITS_WAITING = { perShare: 100, inAll: 200 };

type Kind = 'lock-wait' | 'restoration';

/** Settings that one request of a caller writes together. */
interface LockingWrite {
  readonly caller: string;
  readonly keys: readonly SettingKey[];
}

/**
 * Bounds the connections that a replica's slow work holds: restorations, and writes that wait for a lock of
 * another transaction. They queue here without a connection. So neither one caller nor one long transaction
 * takes the connections of all others.
 */
export class SlowWork {
  private readonly restorations: Slots;
  private readonly lockWaits: Slots;
  private readonly lockWaitsPerCaller: number;
  private readonly refused: (kind: Kind, bound: SlotBound | 'lock') => void;

  /** @param connections size of the connection pool */
  constructor(connections: number, metrics: Metrics) {
    const quarter = Math.max(1, Math.floor(connections / LOCK_WAIT_POOL_DIVISOR));
    this.lockWaitsPerCaller = Math.max(1, Math.floor(quarter / 2));
    this.lockWaits = new Slots(quarter, LOCK_WAITS_WAITING, (bound) => this.isBusy(bound));
    this.restorations = new Slots(Math.min(RESTORATIONS_AT_ONCE, quarter), RESTORATIONS_WAITING, (bound) => {
      this.refused('restoration', bound);
      return new SettingError(bound === 'share' ? 'too-many-restorations' : 'restorations-busy');
    });
    this.refused = this.reportTo(metrics);
  }

  /**
   * Runs a restoration or its dry run once a slot is free.
   * @throws {SettingError} `too-many-restorations`, `restorations-busy`; `setting-busy` if it waits too long
   * for a lock
   */
  restore<T>(caller: string, work: () => Promise<T>): Promise<T> {
    const share = { key: caller, limit: RESTORATIONS_PER_CALLER };
    return this.restorations.run([share], () => this.refuseOnLockTimeout(work));
  }

  /**
   * Runs `work` with a short lock wait. If that times out, runs it again as `waitForLock` does.
   * @throws {SettingError} `setting-busy`
   */
  async write<T>(write: LockingWrite, work: (lockWaitMs: number) => Promise<T>): Promise<T> {
    try {
      return await work(SHORT_LOCK_WAIT_MS);
    } catch (error) {
      if (!isLockTimeout(error)) throw error;
      return this.waitForLock(write, work);
    }
  }

  /**
   * Runs a write of a setting that another transaction has locked, with a longer lock wait, once a slot is
   * free.
   * @throws {SettingError} `setting-busy`
   */
  waitForLock<T>({ caller, keys }: LockingWrite, work: (lockWaitMs: number) => Promise<T>): Promise<T> {
    const shares: Share[] = keys.map((key) => ({ key: `setting ${settingKeyText(key)}`, limit: 1 }));
    shares.push({ key: `caller ${caller}`, limit: this.lockWaitsPerCaller });
    return this.lockWaits.run(shares, () => this.refuseOnLockTimeout(() => work(LOCK_WAIT_MS)));
  }

  private async refuseOnLockTimeout<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw isLockTimeout(error) ? this.isBusy('lock', error) : error;
    }
  }

  private isBusy(bound: SlotBound | 'lock', cause?: unknown): SettingError {
    this.refused('lock-wait', bound);
    return new SettingError('setting-busy', { cause });
  }

  private reportTo(metrics: Metrics): (kind: Kind, bound: SlotBound | 'lock') => void {
    metrics.sampledGauge(
      'settings_slow_work',
      'Restorations, and writes that wait for a lock: those running, which hold a connection, and those waiting for a slot',
      ['kind', 'state'],
      () =>
        Object.entries({ restoration: this.restorations, 'lock-wait': this.lockWaits }).flatMap(
          ([kind, { counts }]) => [
            { labels: { kind, state: 'running' }, value: counts.running },
            { labels: { kind, state: 'waiting' }, value: counts.waiting },
          ],
        ),
    );
    const refusals = metrics.counter(
      'settings_slow_work_refused_total',
      'Restorations and writes refused, by bound: too many waited for one caller or setting (share) or in the replica, a slot came too late, or a lock was not acquired in time (lock)',
      ['kind', 'bound'],
    );
    // Starts every series at 0, because Prometheus does not see an increase in a series whose first value is
    // 1.
    for (const bound of SLOT_BOUNDS)
      for (const kind of ['restoration', 'lock-wait']) refusals.inc({ kind, bound }, 0);
    refusals.inc({ kind: 'lock-wait', bound: 'lock' }, 0);
    return (kind, bound) => refusals.inc({ kind, bound });
  }
}
