import { randomUUID } from 'node:crypto';
import type { BusinessUnitChangeV1, TaskInstanceCompletedEvent } from '@platform/contracts';

const INSTANT = '2026-01-05T10:00:00Z';

/** A completed task instance. */
export function completedEvent(
  overrides: Partial<TaskInstanceCompletedEvent> = {},
): TaskInstanceCompletedEvent {
  return {
    taskInstanceId: randomUUID(),
    scheduleId: randomUUID(),
    facilityId: 501,
    dueAtUtc: INSTANT,
    completedAtUtc: INSTANT,
    completedBy: { personId: 1001, name: 'Carl', persona: 2 },
    ...overrides,
  };
}

/** An activation of business unit 77. */
export function businessUnitChange(overrides: Partial<BusinessUnitChangeV1> = {}): BusinessUnitChangeV1 {
  return {
    eventId: randomUUID(),
    occurredAtUtc: INSTANT,
    businessUnitId: 77,
    facilityIds: [501, 502],
    changeType: 'Activated',
    ...overrides,
  };
}
