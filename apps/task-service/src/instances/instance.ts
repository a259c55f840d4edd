import type { Actor } from '@platform/contracts';
import type { InstanceStatus } from './instance-status';

/** A stored task instance. */
export interface TaskInstance {
  readonly taskInstanceId: string;
  readonly scheduleId: string;
  readonly facilityId: number;
  readonly name: string;
  readonly dueAt: Date;
  readonly status: InstanceStatus;
  readonly completedAt: Date | null;
  readonly completedBy: Actor | null;
  readonly notes: string | null;
}

/** A task instance as HTTP answers show it. Source: docs/spec-gaps.md. */
export interface InstanceBody {
  readonly taskInstanceId: string;
  readonly scheduleId: string;
  readonly facilityId: number;
  readonly name: string;
  readonly dueAtUtc: string;
  readonly status: InstanceStatus;
  readonly completedAtUtc: string | null;
  readonly completedBy: Actor | null;
  readonly notes: string | null;
}

/** The instance as HTTP answers show it. */
export function instanceBody(instance: TaskInstance): InstanceBody {
  const { taskInstanceId, scheduleId, facilityId, name, dueAt, status, completedAt, completedBy, notes } =
    instance;
  return {
    taskInstanceId,
    scheduleId,
    facilityId,
    name,
    dueAtUtc: dueAt.toISOString(),
    status,
    completedAtUtc: completedAt?.toISOString() ?? null,
    completedBy,
    notes,
  };
}
