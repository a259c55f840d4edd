import type { ScheduleStatus } from './schedule.entity';

/** What can be asked of a schedule. */
export type ScheduleCommand = 'update' | 'pause' | 'resume' | 'remove';

/** The state that each command leads to; one that is not here is refused. Pause, resume and remove change nothing where the schedule is
 *  in that state already. Source: docs/spec-gaps.md; docs/task-states.md draws it. */
export const SCHEDULE_TRANSITIONS: Readonly<
  Record<ScheduleStatus, Partial<Record<ScheduleCommand, ScheduleStatus>>>
> = {
  Active: { update: 'Active', pause: 'Paused', resume: 'Active', remove: 'Removed' },
  Paused: { update: 'Paused', pause: 'Paused', resume: 'Active', remove: 'Removed' },
  Removed: { remove: 'Removed' },
};
