/** States of a trigger: WAITING fires when due, PAUSED never does, ERROR is one that cannot be evaluated any more. */
export const TRIGGER_STATES = ['WAITING', 'PAUSED', 'ERROR'] as const;
type TriggerState = (typeof TRIGGER_STATES)[number];

/** The job of every trigger. Source: task messaging spec, Scheduler rules 1. */
export const JOB_NAME = 'GenerateTaskInstancesSchedule';
/** The one group of all triggers. Source: task messaging spec, Scheduler rules 2. */
export const TRIGGER_GROUP = 'TaskInstanceGeneration';

/** A trigger of the store. */
export interface Trigger {
  readonly facilityId: number;
  readonly triggerName: string;
  readonly triggerGroup: string;
  readonly jobName: string;
  readonly schedule: string;
  readonly timeZone: string;
  readonly state: TriggerState;
  readonly nextFireAt: Date;
  readonly previousFireAt: Date | null;
}

/** A trigger as HTTP answers show it. */
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

/** Name of a facility's trigger: derived from the facility, so there is one per facility. */
export function triggerName(facilityId: number): string {
  return `facility-${String(facilityId)}`;
}

/** The trigger as HTTP answers show it. */
export function triggerBody({ nextFireAt, previousFireAt, ...trigger }: Trigger): TriggerBody {
  return {
    ...trigger,
    nextFireAtUtc: nextFireAt.toISOString(),
    previousFireAtUtc: previousFireAt?.toISOString() ?? null,
  };
}
