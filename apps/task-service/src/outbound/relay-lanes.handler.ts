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
import { acquireLanes } from './acquire-lanes.query';
import { BusPauses } from './bus-pauses';
import { nextPasses, lanesApart } from './next-passes';
import { publishBatch } from './publish-batch';
import type { BatchOutcome } from './publish-batch';
import { isBusOutage } from './publish-failure';
import { selectBatch } from './select-batch.query';
import type { StoredMessage } from './select-batch.query';
import { settleBatch } from './settle-batch.query';

/** What one pass did, and when the next ones are worth it. */
export interface RelayPass {
  readonly sent: number;
  readonly refused: number;
  /** Lanes of the events that were parked, one entry each. */
  readonly parked: readonly number[];
  /** Wait before the next pass over a lane in ms; nothing is known to be left of lanes that are missing. */
  readonly againInMs: ReadonlyMap<number, number>;
  /** Lanes that are better taken alone the next time. */
  readonly apart: readonly number[];
}

const BATCH_SIZE = 200;
const CONFIRM_TIMEOUT_MS = 2 * SECOND_MS;
/** How long the lanes of one pass may wait for its longest chain of events; what is left takes its turn anew. */
const PASS_LIMIT_MS = SECOND_MS;
/** The server ends a pass that stands still for longer, and with it its locks. No pass that works does: at its limit it starts no
 *  publish, and one takes no longer than its confirm. */
const FROZEN_PASS_LIMIT_MS = 10 * SECOND_MS;
/** Another replica publishes the lane; it may have selected its batch before our event was there. */
const LANE_TAKEN_DELAY_MS = 200;

const NOTHING_LEFT: RelayPass = { sent: 0, refused: 0, parked: [], againInMs: new Map(), apart: [] };

/** One pass over some lanes: take them, publish their oldest events, settle these, in one transaction. */
@Injectable()
export class RelayLanes {
  private readonly pauses = new BusPauses();

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly publisher: MessagePublisher,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  /** A crash between publish and commit publishes again: events leave at least once, and receivers know them by messageId. So the
   *  commit need not wait for the disk either: what a crash of the server undoes is that an event was settled. */
  async execute(lanes: readonly number[]): Promise<RelayPass> {
    const buses = this.pauses.open(this.clock.monotonicMs());
    if (buses.length === 0) return NOTHING_LEFT;
    return inTransaction(
      this.dataSource,
      'READ COMMITTED',
      (manager) => this.pass(manager, lanes, buses),
      // Nothing collides in lanes that this transaction owns; a second attempt would publish everything again.
      { mayBeLostInCrash: true, idleLimitMs: FROZEN_PASS_LIMIT_MS, maxAttempts: 1 },
    );
  }

  private async pass(
    manager: EntityManager,
    wanted: readonly number[],
    buses: readonly Bus[],
  ): Promise<RelayPass> {
    const lanes = await acquireLanes(manager, wanted);
    const taken = new Map(
      wanted.filter((lane) => !lanes.includes(lane)).map((lane) => [lane, LANE_TAKEN_DELAY_MS]),
    );
    if (lanes.length === 0) return { ...NOTHING_LEFT, againInMs: taken };
    const limitPerLane = Math.floor(BATCH_SIZE / lanes.length);
    const batch = await selectBatch(manager, lanes, buses, limitPerLane);
    const outcome = await this.publish(batch);
    await settleBatch(manager, outcome.sent, outcome.refused);
    const pass = { lanes, batch, limitPerLane, outcome, pausesMs: this.pausesAfter(outcome) };
    return {
      sent: outcome.sent.length,
      refused: outcome.refused.length,
      parked: outcome.refused.filter(({ delayMs }) => delayMs === null).map(({ lane }) => lane),
      againInMs: new Map([...taken, ...nextPasses(pass)]),
      apart: lanesApart(pass),
    };
  }

  private publish(batch: readonly StoredMessage[]): Promise<BatchOutcome> {
    const endsAtMs = this.clock.monotonicMs() + PASS_LIMIT_MS;
    return publishBatch(batch, {
      publish: async ({ envelope }) => {
        await this.publisher.publishEnvelope(envelope, { timeoutMs: CONFIRM_TIMEOUT_MS });
        this.pauses.reportSuccess(envelope.bus);
      },
      isOutage: isBusOutage,
      isTimeUp: () => this.clock.monotonicMs() >= endsAtMs,
    });
  }

  private pausesAfter({ outages }: BatchOutcome): Map<Bus, number> {
    const nowMs = this.clock.monotonicMs();
    return new Map([...outages].map((bus) => [bus, this.pauses.reportOutage(bus, nowMs)]));
  }
}
