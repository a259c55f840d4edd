import type { InstanceStatus } from './instance.entity';

/** What can happen to an instance; `release` is what a change of its schedule or calendar does to one that is still to come. */
export type InstanceCommand = 'complete' | 'cancel' | 'release';

/** The state that each command leads to; one that is not here is refused. A command that leads to the state of the instance changes
 *  nothing. Source: docs/spec-gaps.md; docs/task-states.md draws it. */
export const INSTANCE_TRANSITIONS: Readonly<
  Record<InstanceStatus, Partial<Record<InstanceCommand, InstanceStatus>>>
> = {
  Pending: { complete: 'Completed', cancel: 'Cancelled', release: 'Cancelled' },
  Completed: { complete: 'Completed' },
  Cancelled: { cancel: 'Cancelled' },
};
