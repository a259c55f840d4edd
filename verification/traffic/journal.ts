import type { Recurrence } from '#verification/oracle/schedules.ts';

/** A write as its caller knows it. Times in ms of the monotonic clock (`performance.now()`). */
export interface Operation {
  /** Unique. Stored with the write. */
  readonly id: string;
  /** Ordering key. Writes of one group must be stored in an order that agrees with their acknowledgements. */
  readonly group: string;
  readonly invokedAtMs: number;
  /** Null: never acknowledged. The write may have taken effect at any later time, or not at all. */
  readonly acknowledgedAtMs: number | null;
}

/** A session of refresh tokens as its holder knows it. */
export interface Session {
  readonly firstJti: string;
  readonly rotations: { readonly presented: string; readonly received: string }[];
  /**
   * Why the session ended. `revoked`: the worker revoked it. `too-late`: the worker could not retry within
   * the grace period, or does not know the outcome. `rejected`: the service refused it, which is a violation.
   */
  end: 'alive' | 'revoked' | 'too-late' | 'rejected';
}

/** A schedule and the acknowledged commands of the one worker that changes it. */
export interface ChangedSchedule {
  readonly scheduleId: string;
  readonly idempotencyKey: string;
  /** Last acknowledged name. */
  name: string;
  status: 'Active' | 'Paused' | 'Removed';
  /** Expected events of the acknowledged changes, in order. */
  readonly events: string[];
  /** The event of the last change if it was not acknowledged: it may or may not have been published. */
  uncertainEvent: string | null;
  /** True: no further change is sent, because a late attempt of the last one could overwrite it. */
  isClosed: boolean;
  /** The last creation, resumption or reschedule, in ms of the journal's clock. */
  activeSinceMs: number;
}

export interface BusinessUnitChange {
  readonly eventId: string;
  readonly businessUnitId: number;
  readonly changeType: 'Activated' | 'Deactivated';
  readonly facilityIds: readonly number[];
  readonly occurredAtUtc: string;
}

/** The recurrence of a schedule of the load. */
export interface ScheduleKind extends Recurrence {
  readonly calendarId?: string;
}

/**
 * A trigger inserted into the trigger store with occurrences that are already due. Instants in ms since 1970,
 * by the database's clock.
 */
export interface PlantedTrigger {
  readonly facilityId: number;
  /** Cron expression with five fields. */
  readonly schedule: string;
  readonly timeZone: string;
  readonly firstDueAtMs: number;
  readonly plantedAtMs: number;
}

/** The end of all fires of a run, in ms since 1970 by the database's clock. */
export interface FiresEnded {
  /** Every occurrence due up to this instant had time to fire. */
  readonly watchedUntilMs: number;
  /** Nothing fires after this instant. */
  readonly pausedAtMs: number;
}

/** Everything that callers requested during a run, and what the platform acknowledged. */
export class Journal {
  /** PUTs of settings. The id is the value, the group is the setting's name. */
  readonly settings: Operation[] = [];
  /** POSTs of schedules. The id is the idempotency key, the group is the facility. */
  readonly schedules: Operation[] = [];
  /** The recurrences of each schedule, that of its creation first, by idempotency key. */
  readonly recurrences = new Map<string, readonly Recurrence[]>();
  /** Completions. The id is the instance, the group is the facility. */
  readonly completions: Operation[] = [];
  readonly changedSchedules: ChangedSchedule[] = [];
  readonly sessions: Session[] = [];
  readonly revokedTokens: { readonly jti: string; readonly token: string }[] = [];
  /** Changes that the customers service acknowledged. */
  readonly businessUnitChanges: BusinessUnitChange[] = [];
  readonly generationCommands: Operation[] = [];
  readonly planted: PlantedTrigger[] = [];
  /** Null: triggers still fire. */
  firesEnded: FiresEnded | null = null;
  /**
   * Violations observed during the run, e.g. wrong reads, replicas that are not ready, rows kept too long.
   */
  readonly violations: string[] = [];
  /** Steps of the database's clock, in ms of the journal's clock. */
  readonly clockStepsAtMs: number[] = [];
  /** Number of messages that were published a second time under the same id. */
  repeatedMessages = 0;
  /** The longest time in ms for which a token was still accepted after its acknowledged revocation. */
  slowestRevocationMs = 0;

  /** Number of writes acknowledged so far. */
  get acknowledged(): number {
    const operations = [...this.settings, ...this.schedules, ...this.completions, ...this.generationCommands];
    const changes = this.changedSchedules.reduce((sum, { events }) => sum + events.length, 0);
    const rotations = this.sessions.reduce((sum, { rotations: done }) => sum + done.length, 0);
    return (
      operations.filter(({ acknowledgedAtMs }) => acknowledgedAtMs !== null).length +
      changes +
      rotations +
      this.revokedTokens.length +
      this.businessUnitChanges.length
    );
  }
}

/** Makes a journal entry from the outcome of a call. */
export function operationOf(
  id: string,
  group: string,
  outcome: { response: unknown; invokedAtMs: number; endedAtMs: number },
): Operation {
  const { response, invokedAtMs, endedAtMs } = outcome;
  return { id, group, invokedAtMs, acknowledgedAtMs: response === null ? null : endedAtMs };
}
