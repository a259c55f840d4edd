import { createHash } from 'node:crypto';
import type { Actor } from '@platform/contracts';

/** States of a schedule; only Active ones generate. Source: docs/spec-gaps.md. */
export const SCHEDULE_STATUSES = ['Active', 'Paused', 'Removed'] as const;
export type ScheduleStatus = (typeof SCHEDULE_STATUSES)[number];

/** A stored schedule. */
export interface Schedule {
  readonly scheduleId: string;
  readonly facilityId: number;
  readonly name: string;
  readonly description: string | null;
  readonly schedule: string;
  readonly timeZone: string;
  readonly startDate: string | null;
  readonly status: ScheduleStatus;
  readonly createdAt: Date;
  readonly createdBy: Actor;
}

/** A schedule as HTTP answers show it. Source: docs/spec-gaps.md. */
export interface ScheduleBody {
  readonly scheduleId: string;
  readonly facilityId: number;
  readonly name: string;
  readonly description: string | null;
  readonly schedule: string;
  readonly timeZone: string;
  readonly startDate: string | null;
  readonly status: ScheduleStatus;
  readonly createdAtUtc: string;
  readonly createdBy: Actor;
}

/** The schedule as HTTP answers show it. */
export function scheduleBody({ createdAt, createdBy, ...schedule }: Schedule): ScheduleBody {
  return { ...schedule, createdAtUtc: createdAt.toISOString(), createdBy };
}

/** Digest of a validated request, to tell a repeated Idempotency-Key from a reused one. Members come in the order of the
 *  schema, so the order in which the caller wrote them does not matter, except inside `template`. */
export function requestDigest(request: object): string {
  return createHash('sha256').update(JSON.stringify(request)).digest('base64url');
}
