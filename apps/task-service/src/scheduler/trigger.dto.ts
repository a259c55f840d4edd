import { pageKeyQuery, pageSizeQuery } from '@platform/service-defaults';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { facilityIdQuery, facilityIdText } from '../fields/request-fields';
import type { Trigger, TriggerState } from './trigger.entity';

export class ListTriggersDto extends createZodDto(
  z.object({ facilityId: facilityIdQuery, pageKey: pageKeyQuery, pageSize: pageSizeQuery }),
) {}

export class TriggerParams extends createZodDto(z.object({ facilityId: facilityIdText })) {}

/** A trigger as responses show it. */
export interface TriggerBody {
  readonly triggerName: string;
  readonly triggerGroup: string;
  readonly jobName: string;
  readonly facilityId: number;
  readonly schedule: string;
  readonly timeZone: string;
  readonly state: TriggerState;
  readonly nextFireAtUtc: string;
  readonly previousFireAtUtc: string | null;
}

/** The trigger as responses show it. */
export function triggerBody(trigger: Trigger): TriggerBody {
  return {
    facilityId: trigger.facilityId,
    triggerName: trigger.triggerName,
    triggerGroup: trigger.triggerGroup,
    jobName: trigger.jobName,
    schedule: trigger.schedule,
    timeZone: trigger.timeZone,
    state: trigger.state,
    nextFireAtUtc: trigger.nextFireAt.toISOString(),
    previousFireAtUtc: trigger.previousFireAt?.toISOString() ?? null,
  };
}
