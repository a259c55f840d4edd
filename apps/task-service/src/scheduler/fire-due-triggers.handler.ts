import { Injectable, Logger } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { TaskInstanceGenerationRequested } from '@platform/contracts';
import { inTransaction } from '@platform/database';
import { withTrace } from '@platform/service-defaults';
import { DataSource } from 'typeorm';
import type { EntityManager } from 'typeorm';
import { outboundEvent } from '../outbound/outbound-event';
import type { OutboundEvent } from '../outbound/outbound-event';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { parseCronExpression } from '../schedules/cron-expression';
import { timeZone } from '../schedules/time-zone';
import { acquireDueTriggers } from './acquire-due-triggers.query';
import type { DueTrigger } from './acquire-due-triggers.query';
import { decideFire } from './due-fire';
import type { DueFire } from './due-fire';
import { failTriggers } from './fail-triggers.query';
import { openFireSpan } from './fire-span';
import { recordFires } from './record-fires.query';
import type { TriggerFire } from './record-fires.query';

/** What one batch did. */
export interface FiredBatch {
  readonly acquired: number;
  readonly fired: number;
  readonly misfired: number;
}

/** Fires one batch of due triggers: lock, record, store the messages and move on, in one transaction. There is no acquired
 *  state to clean up: a dead replica's locks vanish with its connection. */
@Injectable()
export class FireDueTriggers {
  private readonly logger = new Logger(FireDueTriggers.name);

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly outbound: OutboundProxy,
  ) {}

  execute(): Promise<FiredBatch> {
    return inTransaction(this.dataSource, 'READ COMMITTED', (manager) => this.fireBatch(manager));
  }

  private async fireBatch(manager: EntityManager): Promise<FiredBatch> {
    const due = await acquireDueTriggers(manager);
    const now = due[0]?.now;
    if (!now) return { acquired: 0, fired: 0, misfired: 0 };
    const { fires, failed } = this.decide(due);
    await failTriggers(manager, failed);
    const recorded = await recordFires(manager, fires);
    const fired = fires.filter(({ message }) => recorded.has(message.messageId));
    this.outbound.wakeAfterCommit(
      manager,
      fired.map(({ message }) => message),
    );
    const misfired = fired.filter((fire) => fire.misfired).length;
    return { acquired: due.length, fired: fired.length, misfired };
  }

  private decide(due: readonly DueTrigger[]): {
    fires: TriggerFire[];
    failed: { facilityId: number; error: string }[];
  } {
    const fires: TriggerFire[] = [];
    const failed: { facilityId: number; error: string }[] = [];
    for (const trigger of due) {
      const { facilityId } = trigger;
      const trace = openFireSpan(trigger);
      try {
        fires.push(withTrace(trace, () => this.fire(trigger)));
      } catch (error) {
        trace.span?.fail('trigger-not-evaluated');
        // E.g. a zone that this runtime does not know: one such trigger must not hold up the batch for good.
        withTrace(trace, () => {
          this.logger.error(
            `trigger of facility ${String(facilityId)} cannot be evaluated: ${String(error)}`,
          );
        });
        failed.push({ facilityId, error: String(error) });
      } finally {
        trace.span?.end();
      }
    }
    return { fires, failed };
  }

  private fire({ facilityId, dueAt, now, schedule, timeZone: zone }: DueTrigger): TriggerFire {
    const fire = decideFire(dueAt, now, parseCronExpression(schedule), timeZone(zone));
    const message = this.outbound.prepare(generationRequested(facilityId, fire, now));
    return { ...fire, facilityId, message };
  }
}

function generationRequested(facilityId: number, fire: DueFire, now: Date): OutboundEvent {
  const { scheduledAt, misfired, missedCount } = fire;
  return outboundEvent(
    TaskInstanceGenerationRequested,
    {
      facilityId,
      scheduledFireTimeUtc: scheduledAt.toISOString(),
      fireTimeUtc: now.toISOString(),
      misfired,
      missedCount,
    },
    facilityId,
  );
}
