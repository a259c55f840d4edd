import { Inject, Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { Bus } from '@platform/contracts';
import { inTransaction } from '@platform/database';
import { MessagePublisher } from '@platform/messaging';
import { CLOCK } from '@platform/service-defaults';
import { SECOND_MS } from '@platform/time';
import type { Clock } from '@platform/time';
import { DataSource } from 'typeorm';
import type { EntityManager } from 'typeorm';
import { acquireLane } from './acquire-lane.query';
import { BusPauses } from './bus-pauses';
import { publishBatch } from './publish-batch';
import type { BatchOutcome } from './publish-batch';
import { isBusOutage } from './publish-failure';
import { selectLaneBatch } from './select-lane-batch.query';
import { settleLaneBatch } from './settle-lane-batch.query';

/** What one pass over a lane did, and when the next one is worth it. */
export interface LanePass {
  readonly sent: number;
  readonly refused: number;
  readonly parked: number;
  /** Wait before the next pass in ms; null when nothing is known to be left. */
  readonly againInMs: number | null;
}

const BATCH_SIZE = 200;
const CONFIRM_TIMEOUT_MS = 2 * SECOND_MS;
/** Well below the time after which the server ends a transaction that stands still. */
const PASS_LIMIT_MS = 10 * SECOND_MS;
/** Another replica publishes the lane; it may have selected its batch before our event was there. */
const LANE_TAKEN_DELAY_MS = 200;

const NOTHING_LEFT: LanePass = { sent: 0, refused: 0, parked: 0, againInMs: null };

/** One pass over one lane: take it, publish its oldest events, settle them, in one transaction. */
@Injectable()
export class RelayLane {
  private readonly pauses = new BusPauses();

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly publisher: MessagePublisher,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  /** A crash between publish and commit publishes again: events leave at least once, and receivers know them by messageId. So the
   *  commit need not wait for the disk either: what a crash of the server undoes is that an event was settled. */
  async execute(lane: number): Promise<LanePass> {
    const buses = this.pauses.open(this.clock.monotonicMs());
    if (buses.length === 0) return NOTHING_LEFT;
    return inTransaction(
      this.dataSource,
      'READ COMMITTED',
      (manager) => this.pass(manager, lane, buses),
      // Nothing collides in the lane that this transaction owns; a second attempt would publish everything again.
      { mayBeLostInCrash: true, maxAttempts: 1 },
    );
  }

  private async pass(manager: EntityManager, lane: number, buses: readonly Bus[]): Promise<LanePass> {
    if (!(await acquireLane(manager, lane))) return { ...NOTHING_LEFT, againInMs: LANE_TAKEN_DELAY_MS };
    const batch = await selectLaneBatch(manager, lane, buses, BATCH_SIZE);
    if (batch.length === 0) return NOTHING_LEFT;
    const endsAtMs = this.clock.monotonicMs() + PASS_LIMIT_MS;
    const outcome = await publishBatch(batch, {
      publish: async ({ envelope }) => {
        await this.publisher.publishEnvelope(envelope, { timeoutMs: CONFIRM_TIMEOUT_MS });
        this.pauses.reportSuccess(envelope.bus);
      },
      isOutage: isBusOutage,
      isTimeUp: () => this.clock.monotonicMs() >= endsAtMs,
    });
    await settleLaneBatch(manager, lane, outcome.sent, outcome.refused);
    return this.summary(outcome, batch.length === BATCH_SIZE);
  }

  private summary(outcome: BatchOutcome, isFull: boolean): LanePass {
    const waits = outcome.refused.flatMap(({ delayMs }) => (delayMs === null ? [] : [delayMs]));
    for (const bus of outcome.outages) waits.push(this.pauses.reportOutage(bus, this.clock.monotonicMs()));
    const parked = outcome.refused.filter(({ delayMs }) => delayMs === null).length;
    // What a parked event held back can go now.
    if (outcome.cutShort || parked > 0 || (isFull && outcome.outages.size === 0)) waits.push(0);
    return {
      sent: outcome.sent.length,
      refused: outcome.refused.length,
      parked,
      againInMs: waits.length === 0 ? null : Math.min(...waits),
    };
  }
}
