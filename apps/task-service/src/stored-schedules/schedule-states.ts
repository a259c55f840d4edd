/** States of a schedule. Instances are generated only for Active ones. Source: docs/spec-gaps.md. */
export const SCHEDULE_STATUSES = ['Active', 'Paused', 'Ended', 'Removed'] as const;
export type ScheduleStatus = (typeof SCHEDULE_STATUSES)[number];
/**
 * The states that are stored. An ended schedule is stored as Active with `endedAt`, which release 1.0.0 can
 * handle.
 */
export type StoredStatus = Exclude<ScheduleStatus, 'Ended'>;

/** Returns the state that callers see. */
export function statusOf({
  status,
  endedAt,
}: {
  readonly status: StoredStatus;
  readonly endedAt: Date | null;
}): ScheduleStatus {
  return status === 'Active' && endedAt !== null ? 'Ended' : status;
}

/**
 * Commands to a schedule. `ScheduleEvent` adds `end`, the passing of the schedule's end, and `extend`, an
 * update that moves the end.
 */
export type ScheduleCommand = 'update' | 'pause' | 'resume' | 'remove';
export type ScheduleEvent = ScheduleCommand | 'end' | 'extend';

/**
 * The state after each event. A command that is missing here is rejected. Pause, resume and remove change
 * nothing if the schedule is in that state already. Source: docs/spec-gaps.md; drawn in docs/task-states.md.
 */
export const SCHEDULE_TRANSITIONS: Readonly<
  Record<ScheduleStatus, Partial<Record<ScheduleEvent, ScheduleStatus>>>
> = {
  Active: { update: 'Active', pause: 'Paused', resume: 'Active', remove: 'Removed', end: 'Ended' },
  Paused: { update: 'Paused', pause: 'Paused', resume: 'Active', remove: 'Removed' },
  Ended: { update: 'Ended', extend: 'Active', pause: 'Paused', resume: 'Ended', remove: 'Removed' },
  Removed: { remove: 'Removed' },
};
