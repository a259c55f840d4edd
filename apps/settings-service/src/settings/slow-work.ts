import { TURN_BOUNDS, Turns, isLockTimeout } from '@platform/database';
import type { Share, TurnBound } from '@platform/database';
import type { Metrics } from '@platform/service-defaults';
import { SECOND_MS } from '@platform/time';
import { SettingError } from './setting-problems.filter';
import type { SettingKey } from './setting-key';
import { settingKeyText } from './setting-key';

/** What every write may wait for a lock: writers of one setting need no longer than this for each other. */
export const SHORT_LOCK_WAIT_MS = 20;
/** What a write waits in its turn, and a restoration for each thousand settings. */
export const LOCK_WAIT_MS = 2 * SECOND_MS;

const RESTORATIONS_AT_ONCE = 2;
const RESTORATIONS_PER_CALLER = 1;
const RESTORATIONS_WAITING = { perShare: 2, inAll: 10 };
/** Of the pool, for writes that wait for a lock. */
const LOCK_WAITS_SHARE = 4;
const LOCK_WAITS_WAITING = { perShare: 100, inAll: 200 };

type Kind = 'lock-wait' | 'restoration';

/** Settings that somebody writes together. */
interface LockingWrite {
  readonly caller: string;
  readonly keys: readonly SettingKey[];
}

/**
 * Bounds the connections that slow work of a replica holds: restorations, and writes that wait for a lock
 * that another transaction holds. They wait for their turn here, without a connection. So neither one caller
 * nor one long transaction takes the connections of everybody else.
 */
export class SlowWork {
  private readonly restorations: Turns;
  private readonly lockWaits: Turns;
  private readonly lockWaitsPerCaller: number;
  private readonly refused: (kind: Kind, bound: TurnBound | 'lock') => void;

  /** @param connections of the pool */
  constructor(connections: number, metrics: Metrics) {
    const quarter = Math.max(1, Math.floor(connections / LOCK_WAITS_SHARE));
    this.lockWaitsPerCaller = Math.max(1, Math.floor(quarter / 2));
    this.lockWaits = new Turns(quarter, LOCK_WAITS_WAITING, (bound) => this.isBusy(bound));
    this.restorations = new Turns(Math.min(RESTORATIONS_AT_ONCE, quarter), RESTORATIONS_WAITING, (bound) => {
      this.refused('restoration', bound);
      return new SettingError(bound === 'share' ? 'too-many-restorations' : 'restorations-busy');
    });
    this.refused = this.reportTo(metrics);
  }

  /**
   * Runs a restoration, or a look at what it would change, in its turn.
   * @throws {SettingError} `too-many-restorations`, `restorations-busy`; `setting-busy` if it gets a lock too
   * late
   */
  restore<T>(caller: string, work: () => Promise<T>): Promise<T> {
    const share = { key: caller, limit: RESTORATIONS_PER_CALLER };
    return this.restorations.run([share], () => this.inTime(work));
  }

  /**
   * Runs `work` with a short wait for locks; where that is too short, as `waitForLock`.
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
   * Runs `work`, a write of a setting that another transaction holds, in its turn with a longer wait.
   * @throws {SettingError} `setting-busy`
   */
  waitForLock<T>({ caller, keys }: LockingWrite, work: (lockWaitMs: number) => Promise<T>): Promise<T> {
    const shares: Share[] = keys.map((key) => ({ key: `setting ${settingKeyText(key)}`, limit: 1 }));
    shares.push({ key: `caller ${caller}`, limit: this.lockWaitsPerCaller });
    return this.lockWaits.run(shares, () => this.inTime(() => work(LOCK_WAIT_MS)));
  }

  private async inTime<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw isLockTimeout(error) ? this.isBusy('lock', error) : error;
    }
  }

  private isBusy(bound: TurnBound | 'lock', cause?: unknown): SettingError {
    this.refused('lock-wait', bound);
    return new SettingError('setting-busy', { cause });
  }

  private reportTo(metrics: Metrics): (kind: Kind, bound: TurnBound | 'lock') => void {
    metrics.sampledGauge(
      'settings_slow_work',
      'Restorations and writes that wait for a lock, which hold a connection or wait for one',
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
      'Restorations and writes refused because too many waited (of one caller or setting: share, or in the replica), for too long a time, or for a lock in vain',
      ['kind', 'bound'],
    );
    // Prometheus sees no rise in a series that begins with 1.
    for (const bound of TURN_BOUNDS)
      for (const kind of ['restoration', 'lock-wait']) refusals.inc({ kind, bound }, 0);
    refusals.inc({ kind: 'lock-wait', bound: 'lock' }, 0);
    return (kind, bound) => refusals.inc({ kind, bound });
  }
}
