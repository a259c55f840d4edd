import type { ScheduleSaid } from '#verification/oracle/schedules.ts';

/**
 * A write as its caller knows it: when it was asked for, and when it was acknowledged, if it was. In ms of
 * one clock.
 */
export interface Operation {
  /** What the write is known by afterwards; unique. */
  readonly id: string;
  /** Writes of one group come in the order in which they were acknowledged. */
  readonly group: string;
  readonly invokedAtMs: number;
  /** Null: never acknowledged. It may have happened, at any time after. */
  readonly acknowledgedAtMs: number | null;
}

/** A session of refresh tokens as its holder knows it. */
export interface Session {
  readonly firstJti: string;
  readonly rotations: { readonly presented: string; readonly received: string }[];
  /**
   * Why the holder lost it: `revoked` by the workload itself, `too-late` when it could not ask again in time.
   */
  end: 'alive' | 'revoked' | 'too-late' | 'rejected';
}

/** What became of a schedule by the commands of its one caller. */
export interface Life {
  readonly scheduleId: string;
  readonly idempotencyKey: string;
  /** As acknowledged last. */
  name: string;
  status: 'Active' | 'Paused' | 'Removed';
  /** Events of the acknowledged changes, in order. */
  readonly events: string[];
  /** The event of a change that was never acknowledged. It may have happened. */
  uncertain: string | null;
  /** No further change is sent: a late attempt of the last one must not overwrite it. */
  isOver: boolean;
  /** When it was created, resumed or rescheduled last, in ms of the journal's clock. */
  activeSinceMs: number;
}

export interface BusinessUnitChange {
  readonly eventId: string;
  readonly businessUnitId: number;
  readonly changeType: 'Activated' | 'Deactivated';
  readonly facilityIds: readonly number[];
  readonly occurredAtUtc: string;
}

/** What a schedule of the load is created with. */
export interface ScheduleKind extends ScheduleSaid {
  readonly calendarId?: string;
}

/** A trigger put into the store with occurrences that are due already. Instants in ms since 1970, by the
 *  database's clock. */
export interface PlantedTrigger {
  readonly facilityId: number;
  /** Cron expression with five fields. */
  readonly schedule: string;
  readonly timeZone: string;
  readonly firstDueAtMs: number;
  readonly plantedAtMs: number;
}

/** When the fires of a run ended, in ms since 1970, by the database's clock. */
export interface FiresEnded {
  /** Everything that was due until then had the time to fire. */
  readonly watchedUntilMs: number;
  /** From then on nothing fires. */
  readonly pausedAtMs: number;
}

/** Everything that the platform has acknowledged during a run, and what was asked of it. */
export class Journal {
  /** PUTs of settings: id is the value, group the setting's name. */
  readonly settings: Operation[] = [];
  /** POSTs of schedules: id is the idempotency key, group the facility. */
  readonly schedules: Operation[] = [];
  /** What each of them said of when it is due, and what its changes said, by idempotency key. */
  readonly said = new Map<string, readonly ScheduleSaid[]>();
  /** Completions: id is the instance, group the facility. */
  readonly completions: Operation[] = [];
  readonly lives: Life[] = [];
  readonly sessions: Session[] = [];
  readonly revokedTokens: { readonly jti: string; readonly token: string }[] = [];
  /** Changes that the customers service acknowledged. */
  readonly businessUnitChanges: BusinessUnitChange[] = [];
  readonly generationCommands: Operation[] = [];
  readonly planted: PlantedTrigger[] = [];
  /** Null: triggers still fire. */
  firesEnded: FiresEnded | null = null;
  /**
   * What was seen during the run that must not be: wrong reads, replicas that are not ready, rows kept too
   * long.
   */
  readonly violations: string[] = [];
  /** When the database's clock was stepped. */
  readonly clockStepsAtMs: number[] = [];
  /** Messages published a second time under the same id. */
  repeatedMessages = 0;
  /** The longest for which a token was still taken after its acknowledged revocation, in ms. */
  slowestRevocationMs = 0;

  /** Writes acknowledged so far. */
  get acknowledged(): number {
    const operations = [...this.settings, ...this.schedules, ...this.completions, ...this.generationCommands];
    const changes = this.lives.reduce((sum, { events }) => sum + events.length, 0);
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

/** What `outcome` says of a write known by `id` in `group`. */
export function operationOf(
  id: string,
  group: string,
  outcome: { response: unknown; invokedAtMs: number; endedAtMs: number },
): Operation {
  const { response, invokedAtMs, endedAtMs } = outcome;
  return { id, group, invokedAtMs, acknowledgedAtMs: response === null ? null : endedAtMs };
}
