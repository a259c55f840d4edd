import { Inject, Injectable } from '@nestjs/common';
import type { Caller } from '@platform/access-tokens';
import { type Share, SLOT_BOUNDS, type SlotBound, type Slots } from '@platform/database';
import { Metrics } from '@platform/service-defaults';
import { connectionsForChanges, type httpPoolSize, TASK_CONFIG } from '../config';
import { slotsOf } from './slots';

/** Changes of one target that may run at once. */
const PER_TARGET = 1;
/** Changes of one caller that may run at once. */
const PER_CALLER = 2;
/**
 * Maximum waiting changes: of one caller for one target (`perShare`), and in all. A target has more places,
 * CHANGES_WAITING_FOR_TARGET, so that no caller takes every one.
 */
const CHANGES_WAITING = { perShare: 20, inAll: 1_000 };
const CHANGES_WAITING_FOR_TARGET = 40;
/**
 * Maximum waiting changes of one caller for all targets. Higher, because a caller may complete many instances
 * at once.
 */
const CHANGES_WAITING_OF_CALLER = 100;
/**
 * Creations that may run at once, per facility and in all. They are stored in batches and hold no connection
 * of their own.
 */
const CREATIONS_PER_FACILITY = 2;
const CREATIONS_AT_ONCE = 128;
const CREATIONS_WAITING = { perShare: 100, inAll: 1_000 };
const REFUSALS = { ofShare: 'too-many-changes-at-once', ofAll: 'changes-busy' } as const;

type PoolConfig = Parameters<typeof httpPoolSize>[0];

/**
 * Limits the changes and creations that run at once in this replica. A change holds a connection while it
 * waits for its row lock, so it first waits here for a slot, without a connection. One caller, schedule or
 * facility cannot occupy all connections.
 */
@Injectable()
export class ChangeSlots {
  private readonly changes: Slots;
  private readonly creations: Slots;

  constructor(@Inject(TASK_CONFIG) config: PoolConfig, metrics: Metrics) {
    const refusals = metrics.counter(
      'task_change_slot_refusals_total',
      'Changes and creations refused because too many were waiting for a slot (of a schedule, facility or caller, or in the replica), or waited too long',
      ['bound'],
    );
    // Starts each series at 0: Prometheus sees no increase in a series that begins at 1.
    for (const bound of SLOT_BOUNDS) refusals.inc({ bound }, 0);
    const refused = (bound: SlotBound): void => refusals.inc({ bound });
    this.changes = slotsOf(connectionsForChanges(config), CHANGES_WAITING, REFUSALS, refused);
    this.creations = slotsOf(CREATIONS_AT_ONCE, CREATIONS_WAITING, REFUSALS, refused);
  }

  /**
   * Runs `work` once a slot is free.
   * @param target id of the changed resource, or its kind and number
   * @throws {TaskError} too-many-changes-at-once, changes-busy
   */
  run<T>(target: string, caller: Pick<Caller, 'subject'>, work: () => Promise<T>): Promise<T> {
    const id = target.toLowerCase();
    const shares = [
      { key: `target ${id}`, limit: PER_TARGET, maxWaiting: CHANGES_WAITING_FOR_TARGET },
      { key: `target ${id} of ${caller.subject}`, limit: PER_TARGET },
      shareOf(caller),
    ];
    return this.changes.run(shares, work);
  }

  /**
   * Runs a short read about a target in a slot of the caller, without waiting for the target. A caller that
   * may not change the target is rejected by this read and does not occupy a place in the target's queue.
   * @throws {TaskError} too-many-changes-at-once, changes-busy
   */
  lookUp<T>(caller: Pick<Caller, 'subject'>, read: () => Promise<T>): Promise<T> {
    return this.changes.run([shareOf(caller)], read);
  }

  /**
   * Runs a creation that is stored in a batch with others, once a slot is free.
   * @throws {TaskError} too-many-changes-at-once, changes-busy
   */
  runInBatch<T>(facilityId: number, work: () => Promise<T>): Promise<T> {
    const share = { key: `facility ${String(facilityId)}`, limit: CREATIONS_PER_FACILITY };
    return this.creations.run([share], work);
  }
}

function shareOf({ subject }: Pick<Caller, 'subject'>): Share {
  return { key: `caller ${subject}`, limit: PER_CALLER, maxWaiting: CHANGES_WAITING_OF_CALLER };
}
