import { Check, Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { BIGINT, INSTANT } from '../fields/fields';

/**
 * States of a trigger. WAITING: fires when due. PAUSED: does not fire. ERROR: cannot be evaluated any more.
 */
export const TRIGGER_STATES = ['WAITING', 'PAUSED', 'ERROR'] as const;
export type TriggerState = (typeof TRIGGER_STATES)[number];

/** Name of the job of every trigger. Source: task messaging spec, Scheduler rules 1. */
export const JOB_NAME = 'GenerateTaskInstancesSchedule';
/** Group of all triggers. Source: task messaging spec, Scheduler rules 2. */
export const TRIGGER_GROUP = 'TaskInstanceGeneration';

/**
 * Returns the name of a facility's trigger. It is derived from the facility, so each facility has at most
 * one.
 */
export function triggerName(facilityId: number): string {
  return `facility-${String(facilityId)}`;
}

/**
 * Returns the jitter of a facility, from 0 to below `spanSeconds`. It is the same on every replica and
 * release. Knuth's multiplicative hash spreads neighbouring ids evenly.
 */
export function jitterSecondsOf(facilityId: number, spanSeconds: number): number {
  return spanSeconds === 0 ? 0 : (Math.imul(facilityId % 2 ** 32, 2_654_435_761) >>> 0) % spanSeconds;
}

/** The trigger that fires the generation of a facility's task instances; at most one per facility. */
@Entity('triggers')
@Index('triggers_due', ['nextFireAt', 'facilityId'], { where: `state = 'WAITING'` })
@Index('triggers_failed', ['facilityId'], { where: `state = 'ERROR'` })
@Check('triggers_facility_id_check', 'facility_id > 0')
@Check('triggers_state_check', `state IN ('WAITING', 'PAUSED', 'ERROR')`)
export class Trigger {
  @PrimaryColumn({ name: 'facility_id', ...BIGINT, primaryKeyConstraintName: 'triggers_pkey' })
  readonly facilityId!: number;

  @Column({ name: 'trigger_name', type: 'text' })
  readonly triggerName!: string;

  @Column({ name: 'trigger_group', type: 'text' })
  readonly triggerGroup!: string;

  @Column({ name: 'job_name', type: 'text' })
  readonly jobName!: string;

  /** Cron expression with five fields. */
  @Column({ type: 'text' })
  readonly schedule!: string;

  @Column({ name: 'time_zone', type: 'text' })
  readonly timeZone!: string;

  @Column({ type: 'text', default: 'WAITING' })
  readonly state!: TriggerState;

  @Column({ name: 'next_fire_at', ...INSTANT })
  readonly nextFireAt!: Date;

  /**
   * Delay in seconds of each fire after its occurrence, so that facilities with the default expression do not
   * all fire at once.
   */
  @Column({ name: 'jitter_seconds', type: 'integer', default: 0 })
  readonly jitterSeconds!: number;

  @Column({ name: 'previous_fire_at', ...INSTANT, nullable: true })
  readonly previousFireAt!: Date | null;

  /** Reason for the state ERROR, for operators. */
  @Column({ type: 'text', nullable: true, select: false })
  readonly error!: string | null;

  /**
   * Trace in which the trigger was created or last changed, as a W3C `traceparent`. The spans of its fires
   * link to this trace.
   */
  @Column({ name: 'origin_trace', type: 'text', nullable: true, select: false })
  readonly originTrace!: string | null;
}
