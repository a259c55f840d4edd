import { Inject, Injectable } from '@nestjs/common';
import type { Caller } from '@platform/access-tokens';
import { type Share, TURN_BOUNDS, type TurnBound, type Turns } from '@platform/database';
import { Metrics } from '@platform/service-defaults';
import { connectionsForChanges, type httpPoolSize, TASK_CONFIG } from '../config';
import { turnsOf } from '../turns/turns';

const PER_TARGET = 1;
const PER_CALLER = 2;
/** Of one caller fewer changes of a target may wait than of all callers: nobody takes every place. */
const CHANGES_WAITING = { perShare: 20, inAll: 1_000 };
const CHANGES_WAITING_FOR_TARGET = 40;
/** Somebody may complete many instances at the same moment. */
const CHANGES_WAITING_OF_CALLER = 100;
/** Creations that are stored in batches, of one facility and in all. They hold no connection of their own. */
const CREATIONS_PER_FACILITY = 2;
const CREATIONS_AT_ONCE = 128;
const CREATIONS_WAITING = { perShare: 100, inAll: 1_000 };
const REFUSALS = { ofShare: 'too-many-changes-at-once', ofAll: 'changes-busy' } as const;

type PoolConfig = Parameters<typeof httpPoolSize>[0];

/**
 * Bounds the changes and creations that run at once in this replica. A change holds a connection while it
 * waits for the lock of its row. It therefore waits for its turn here first, without a connection: one
 * caller, schedule or facility cannot take all of them.
 */
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
    for (const bound of TURN_BOUNDS) refusals.inc({ bound }, 0);
    const refused = (bound: TurnBound): void => refusals.inc({ bound });
    this.changes = turnsOf(connectionsForChanges(config), CHANGES_WAITING, REFUSALS, refused);
    this.creations = turnsOf(CREATIONS_AT_ONCE, CREATIONS_WAITING, REFUSALS, refused);
  }

  /**
   * Runs `work` as soon as there is a turn for it.
   * @param target the id of what it changes, or its kind and number
   * @throws {TaskError} too-many-changes-at-once, changes-busy
   */
  run<T>(target: string, caller: Pick<Caller, 'subject'>, work: () => Promise<T>): Promise<T> {
    const id = target.toLowerCase();
    const shares = [
      { key: `target ${id}`, limit: PER_TARGET, mayWait: CHANGES_WAITING_FOR_TARGET },
      { key: `target ${id} of ${caller.subject}`, limit: PER_TARGET },
      shareOf(caller),
    ];
    return this.changes.run(shares, work);
  }

  /** Runs a short read about a target in a turn of the caller alone. Whoever may not change the target is
   *  refused by it, and takes none of the places that wait for the target.
   *  @throws {TaskError} too-many-changes-at-once, changes-busy */
  lookUp<T>(caller: Pick<Caller, 'subject'>, read: () => Promise<T>): Promise<T> {
    return this.changes.run([shareOf(caller)], read);
  }

  /** Runs a creation that is stored in a batch with others.
   *  @throws {TaskError} too-many-changes-at-once, changes-busy */
  runInBatch<T>(facilityId: number, work: () => Promise<T>): Promise<T> {
    const share = { key: `facility ${String(facilityId)}`, limit: CREATIONS_PER_FACILITY };
    return this.creations.run([share], work);
  }
}

function shareOf({ subject }: Pick<Caller, 'subject'>): Share {
  return { key: `caller ${subject}`, limit: PER_CALLER, mayWait: CHANGES_WAITING_OF_CALLER };
}
