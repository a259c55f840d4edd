/** States of a task instance: Pending → Completed | Cancelled. Source: docs/spec-gaps.md. */
export const INSTANCE_STATUSES = ['Pending', 'Completed', 'Cancelled'] as const;
export type InstanceStatus = (typeof INSTANCE_STATUSES)[number];

/** What the complete command does to an instance in this state: `complete` it; `repeat` the answer without a second
 *  event, because it is completed already; `refuse`, because a cancelled instance stays cancelled. */
export function completionOutcome(status: InstanceStatus): 'complete' | 'repeat' | 'refuse' {
  const outcomes = {
    Pending: 'complete',
    Completed: 'repeat',
    Cancelled: 'refuse',
  } as const satisfies Record<InstanceStatus, string>;
  return outcomes[status];
}
