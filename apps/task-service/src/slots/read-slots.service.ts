import { Inject, Injectable } from '@nestjs/common';
import type { Caller } from '@platform/access-tokens';
import { SLOT_BOUNDS, type SlotBound, type Slots } from '@platform/database';
import { Metrics } from '@platform/service-defaults';
import { connectionsForReads, type httpPoolSize, readsOfOneCaller, TASK_CONFIG } from '../config';
import { slotsOf } from './slots';

const WAITING = { perShare: 100, inAll: 1_000 };
/**
 * Key of the share for reads that first query auth-service. While it is down, they hold their slots until the
 * query times out.
 */
const IDENTITY_SHARE = 'facilities of auth-service';
const REFUSALS = { ofShare: 'too-many-reads-at-once', ofAll: 'reads-busy' } as const;

/**
 * Limits the reads that run at once in this replica, per caller and in all. A page over a thousand facilities
 * holds a connection for tens of milliseconds, so without a limit one caller could occupy all of them.
 */
@Injectable()
export class ReadSlots {
  private readonly slots: Slots;
  private readonly perCaller: number;
  private readonly identityReads: number;

  constructor(@Inject(TASK_CONFIG) config: Parameters<typeof httpPoolSize>[0], metrics: Metrics) {
    const refusals = metrics.counter(
      'task_read_refusals_total',
      'Reads refused because too many were waiting for a slot (of one caller, or in the replica), or waited too long',
      ['bound'],
    );
    // Starts each series at 0: Prometheus sees no increase in a series that begins at 1.
    for (const bound of SLOT_BOUNDS) refusals.inc({ bound }, 0);
    const refused = (bound: SlotBound): void => refusals.inc({ bound });
    this.perCaller = readsOfOneCaller(config);
    this.identityReads = Math.max(1, Math.floor(connectionsForReads(config) / 2));
    this.slots = slotsOf(connectionsForReads(config), WAITING, REFUSALS, refused);
  }

  /**
   * Runs a read in a slot of its caller.
   * @throws {TaskError} too-many-reads-at-once, reads-busy
   */
  run<T>({ subject, overflow }: Pick<Caller, 'subject' | 'overflow'>, read: () => Promise<T>): Promise<T> {
    const shares = [{ key: `caller ${subject}`, limit: this.perCaller }];
    if (overflow.includes('facilities')) shares.push({ key: IDENTITY_SHARE, limit: this.identityReads });
    return this.slots.run(shares, read);
  }
}
