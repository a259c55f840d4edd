import type { Journal, ChangedSchedule, Operation } from '#verification/traffic/journal.ts';
import { compareInstances } from '#verification/oracle/instances.ts';
import type { DueInstants } from '#verification/oracle/schedules.ts';
import { type Check, CheckBuilder } from './check.ts';

/** A schedule and the due times of its instances in ms since 1970, without those that a change released. */
export interface StoredSchedule {
  readonly scheduleId: string;
  /** The idempotency key of the request that created it. */
  readonly key: string;
  readonly name: string;
  readonly status: string;
  readonly pending: readonly number[];
  /** Completed, or cancelled by a person. */
  readonly settled: readonly number[];
  /** Number of pending instances that are due in the future. */
  readonly futureCount: number;
}

/** Inputs for the expected instances, besides the journal. */
export interface InstanceClocks {
  readonly due: DueInstants;
  /** The last expected fire of each facility, in ms since 1970. */
  readonly lastFires: ReadonlyMap<number, number>;
  readonly horizonMs: number;
  /** The end of the drain, in ms since 1970. */
  readonly endedAtMs: number;
  readonly toleranceMs: number;
}

/**
 * Checks that each schedule has an instance at every instant given by its recurrence, zone and calendar, and
 * at no other.
 * @param consumedCount number of ScheduleCreated messages that the task service consumed
 */
export function auditInstances(
  journal: Journal,
  schedules: readonly StoredSchedule[],
  consumedCount: number,
  clocks: InstanceClocks,
): Check {
  const check = new CheckBuilder(
    'schedules: IScheduleCreatedEvent consumed, an instance for each due instant',
  );
  const requested = new Map(journal.schedules.map((operation) => [operation.id, operation]));
  const changedByKey = new Map(journal.changedSchedules.map((changed) => [changed.idempotencyKey, changed]));
  let audited = 0;
  for (const schedule of schedules) {
    const operation = requested.get(schedule.key);
    // Another check reports schedules that were never requested.
    if (operation === undefined) continue;
    audited += schedule.pending.length + schedule.settled.length;
    const recurrences = journal.recurrences.get(schedule.key) ?? [];
    const request = { operation, changed: changedByKey.get(schedule.key), recurrences };
    for (const finding of differences(schedule, request, clocks))
      check.wrong(`schedule ${schedule.scheduleId} ${finding}`);
  }
  if (consumedCount !== schedules.length)
    check.wrong(`${consumedCount} events consumed for ${schedules.length} schedules`);
  return check.done(schedules.length, audited);
}

/** What a caller requested for one schedule. */
interface ScheduleRequest {
  readonly operation: Operation;
  /** Undefined: its caller never changes this schedule. */
  readonly changed: ChangedSchedule | undefined;
  /** The recurrence of the creation, then those of the changes. */
  readonly recurrences: readonly Parameters<DueInstants['of']>[0][];
}

function differences(
  schedule: StoredSchedule,
  { operation, changed, recurrences }: ScheduleRequest,
  clocks: InstanceClocks,
): string[] {
  const { due, lastFires, horizonMs, endedAtMs, toleranceMs } = clocks;
  const { pending, settled, status, futureCount } = schedule;
  const current = recurrences.at(-1);
  if (current === undefined) return ['was created by a request that the journal does not have'];
  if (status !== 'Active')
    return futureCount > 0 ? [`is ${status} and has ${futureCount} instances to come`] : [];
  // The last change was not acknowledged: it may or may not have taken effect.
  if (changed !== undefined && changed.uncertainEvent !== null) return [];
  const acknowledgedAtMs = operation.acknowledgedAtMs ?? null;
  const activeSinceMs = changed?.activeSinceMs ?? acknowledgedAtMs;
  const requestedAtMs = toEpochMs(operation.invokedAtMs);
  const common = { requestedAtMs, latestMs: endedAtMs + horizonMs, toleranceMs };
  const { missing } = compareInstances(due.of(current), [...pending, ...settled], {
    ...common,
    activeSinceMs: activeSinceMs === null ? null : toEpochMs(activeSinceMs),
    generatedUntilMs: Math.max(requestedAtMs, lastFires.get(Number(operation.group)) ?? 0) + horizonMs,
  });
  const nothingRequired = { ...common, activeSinceMs: null, generatedUntilMs: 0 };
  const { wrong } = compareInstances(due.of(current), pending, nothingRequired);
  // Completed and cancelled instances may stem from an earlier recurrence of the schedule.
  const everDue = recurrences.flatMap((each) => due.of(each));
  const { wrong: wrongSettled } = compareInstances(everDue, settled, nothingRequired);
  const name = `("${current.schedule}" in ${current.timeZone})`;
  return [
    ...missing.map((atMs) => `${name} has no instance at ${new Date(atMs).toISOString()}`),
    ...[...wrong, ...wrongSettled].map(
      (atMs) => `${name} has an instance at ${new Date(atMs).toISOString()}`,
    ),
  ];
}

/** Converts an instant of the journal's monotonic clock to ms since 1970. */
export function toEpochMs(journalMs: number): number {
  return performance.timeOrigin + journalMs;
}
