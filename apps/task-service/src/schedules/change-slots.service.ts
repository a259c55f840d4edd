import { Inject, Injectable } from '@nestjs/common';
import type { Caller } from '@platform/access-tokens';
import { Metrics } from '@platform/service-defaults';
import { SECOND_MS } from '@platform/time';
import { connectionsForChanges, type httpPoolSize, TASK_CONFIG } from '../config';
import { TaskError } from '../problems/task-problem.filter';

/** How long a change waits for its turn. */
const WAIT_LIMIT_MS = 3 * SECOND_MS;
const PER_TARGET = 1;
const PER_CALLER = 2;
const CHANGES_WAITING = { perShare: 20, inAll: 100 };
/** Creations that are stored in batches, of one facility and in all. They hold no connection of their own. */
const CREATIONS_PER_FACILITY = 2;
const CREATIONS_AT_ONCE = 128;
const CREATIONS_WAITING = { perShare: 100, inAll: 1_000 };

type PoolConfig = Parameters<typeof httpPoolSize>[0];

/** Which bound refused it. */
const BOUNDS = ['share', 'replica', 'time'] as const;
type Bound = (typeof BOUNDS)[number];

interface Share {
  readonly key: string;
  /** How many of the share may run at once. */
  readonly limit: number;
}

interface Waiting {
  readonly shares: readonly Share[];
  readonly start: () => void;
}

/** Bounds the changes and creations that run at once in this replica. A change holds a connection while it waits for the lock of its row.
 *  It therefore waits for its turn here first, without a connection: one caller, schedule or facility cannot take all of them. */
@Injectable()
export class ChangeSlots {
  private readonly changes: Turns;
  private readonly creations: Turns;

  constructor(@Inject(TASK_CONFIG) config: PoolConfig, metrics: Metrics) {
    const refusals = metrics.counter(
      'task_change_slot_refusals_total',
      'Changes and creations refused because too many waited for a turn (of the share of a schedule, facility or caller, or in the replica) or for too long a time',
      ['bound'],
    );
    // Prometheus sees no rise in a series that begins with 1.
    for (const bound of BOUNDS) refusals.inc({ bound }, 0);
    const refused = (bound: Bound): void => refusals.inc({ bound });
    // Reads and batches of creations have the rest.
    this.changes = new Turns(connectionsForChanges(config), CHANGES_WAITING, refused);
    this.creations = new Turns(CREATIONS_AT_ONCE, CREATIONS_WAITING, refused);
  }

  /** Runs `work` as soon as there is a turn for it. @param target the id of what it changes
   *  @throws {TaskError} too-many-changes-at-once, changes-busy */
  run<T>(target: string, { subject }: Pick<Caller, 'subject'>, work: () => Promise<T>): Promise<T> {
    const shares = [
      { key: `target ${target.toLowerCase()}`, limit: PER_TARGET },
      { key: `caller ${subject}`, limit: PER_CALLER },
    ];
    return this.changes.run(shares, work);
  }

  /** Runs a creation that is stored in a batch with others.
   *  @throws {TaskError} too-many-changes-at-once, changes-busy */
  runInBatch<T>(facilityId: number, work: () => Promise<T>): Promise<T> {
    const share = { key: `facility ${String(facilityId)}`, limit: CREATIONS_PER_FACILITY };
    return this.creations.run([share], work);
  }
}

/** Turns of things that share a number of places. */
class Turns {
  private readonly running = new Map<string, number>();
  private readonly waiting = new Set<Waiting>();
  private runningInAll = 0;

  constructor(
    private readonly limit: number,
    private readonly mayWait: { readonly perShare: number; readonly inAll: number },
    private readonly onRefusal: (bound: Bound) => void,
  ) {}

  async run<T>(shares: readonly Share[], work: () => Promise<T>): Promise<T> {
    if (this.mayRun(shares)) this.take(shares);
    else await this.turn(shares);
    try {
      return await work();
    } finally {
      this.giveBack(shares);
    }
  }

  private async turn(shares: readonly Share[]): Promise<void> {
    if (shares.some(({ key }) => this.waitingOf(key) >= this.mayWait.perShare)) throw this.refusal('share');
    if (this.waiting.size >= this.mayWait.inAll) throw this.refusal('replica');
    await new Promise<void>((resolve, reject) => {
      const waiting: Waiting = {
        shares,
        start: () => {
          clearTimeout(timer);
          resolve();
        },
      };
      const timer = setTimeout(() => {
        this.waiting.delete(waiting);
        // Those before it take too long, as when the database is away: not the caller's fault.
        reject(this.refusal('time'));
      }, WAIT_LIMIT_MS);
      this.waiting.add(waiting);
    });
  }

  /** Those that waited longest come first, of those whose shares have room. */
  private giveBack(shares: readonly Share[]): void {
    this.runningInAll -= 1;
    for (const { key } of shares) {
      const left = this.runningOf(key) - 1;
      if (left === 0) this.running.delete(key);
      else this.running.set(key, left);
    }
    for (const waiting of this.waiting) {
      if (!this.mayRun(waiting.shares)) continue;
      this.waiting.delete(waiting);
      this.take(waiting.shares);
      waiting.start();
    }
  }

  private take(shares: readonly Share[]): void {
    this.runningInAll += 1;
    for (const { key } of shares) this.running.set(key, this.runningOf(key) + 1);
  }

  private mayRun(shares: readonly Share[]): boolean {
    return this.runningInAll < this.limit && this.hasRoom(shares);
  }

  private hasRoom(shares: readonly Share[]): boolean {
    return shares.every(({ key, limit }) => this.runningOf(key) < limit);
  }

  private runningOf(key: string): number {
    return this.running.get(key) ?? 0;
  }

  private waitingOf(key: string): number {
    return [...this.waiting].filter(({ shares }) => shares.some((share) => share.key === key)).length;
  }

  private refusal(bound: Bound): TaskError {
    this.onRefusal(bound);
    return bound === 'share'
      ? new TaskError('too-many-changes-at-once', { retryAfterSeconds: 1 })
      : new TaskError('changes-busy', { retryAfterSeconds: 1 });
  }
}
