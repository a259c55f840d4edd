import type { Journal, Life, Operation } from '#verification/traffic/journal.ts';
import { compareInstances } from '#verification/oracle/instances.ts';
import type { DueInstants } from '#verification/oracle/schedules.ts';
import { type Check, CheckBuilder } from './check.ts';

/** A schedule with its instances that were not released, by when they are due, in ms since 1970. */
export interface StoredSchedule {
  readonly scheduleId: string;
  /** The idempotency key of the request that created it. */
  readonly key: string;
  readonly name: string;
  readonly status: string;
  readonly pending: readonly number[];
  /** Completed, or cancelled by a person. */
  readonly settled: readonly number[];
  /** How many of the pending are still to come. */
  readonly coming: number;
}

/** What instances are computed from besides the journal. */
export interface InstanceClocks {
  readonly due: DueInstants;
  /** The last fire that each facility was bound to have, in ms since 1970. */
  readonly lastFires: ReadonlyMap<number, number>;
  readonly horizonMs: number;
  /** When nothing more was under way, in ms since 1970. */
  readonly endedAtMs: number;
  readonly toleranceMs: number;
}

/** Each schedule has an instance at every instant that its recurrence, zone and calendar say, and at no
 *  other. */
export function auditInstances(
  journal: Journal,
  schedules: readonly StoredSchedule[],
  taken: number,
  clocks: InstanceClocks,
): Check {
  const check = new CheckBuilder('schedules: IScheduleCreatedEvent taken, an instance for each due instant');
  const askedFor = new Map(journal.schedules.map((operation) => [operation.id, operation]));
  const lives = new Map(journal.lives.map((life) => [life.idempotencyKey, life]));
  let audited = 0;
  for (const schedule of schedules) {
    const operation = askedFor.get(schedule.key);
    // Another check finds a schedule that nobody asked for.
    if (operation === undefined) continue;
    audited += schedule.pending.length + schedule.settled.length;
    const said = journal.said.get(schedule.key) ?? [];
    for (const finding of differences(schedule, { operation, life: lives.get(schedule.key), said }, clocks))
      check.wrong(`schedule ${schedule.scheduleId} ${finding}`);
  }
  if (taken !== schedules.length) check.wrong(`${taken} events taken for ${schedules.length} schedules`);
  return check.done(schedules.length, audited);
}

interface Asked {
  readonly operation: Operation;
  readonly life: Life | undefined;
  readonly said: readonly Parameters<DueInstants['of']>[0][];
}

function differences(
  schedule: StoredSchedule,
  { operation, life, said }: Asked,
  clocks: InstanceClocks,
): string[] {
  const { due, lastFires, horizonMs, endedAtMs, toleranceMs } = clocks;
  const { pending, settled, status, coming } = schedule;
  const current = said.at(-1);
  if (current === undefined) return ['was created by a request of which nothing is known'];
  if (status !== 'Active') return coming > 0 ? [`is ${status} and has ${coming} instances to come`] : [];
  // Nobody knows whether the last change took effect.
  if (life !== undefined && life.uncertain !== null) return [];
  const acknowledgedAtMs = operation.acknowledgedAtMs ?? null;
  const activeSinceMs = life?.activeSinceMs ?? acknowledgedAtMs;
  const askedForAtMs = everybodysMs(operation.invokedAtMs);
  const common = { askedForAtMs, latestMs: endedAtMs + horizonMs, toleranceMs };
  const { missing } = compareInstances(due.of(current), [...pending, ...settled], {
    ...common,
    activeSinceMs: activeSinceMs === null ? null : everybodysMs(activeSinceMs),
    generatedUntilMs: Math.max(askedForAtMs, lastFires.get(Number(operation.group)) ?? 0) + horizonMs,
  });
  const mayBe = { ...common, activeSinceMs: null, generatedUntilMs: 0 };
  const { wrong } = compareInstances(due.of(current), pending, mayBe);
  // What is settled may have been due by what an earlier change had said.
  const ever = said.flatMap((each) => due.of(each));
  const { wrong: wrongSettled } = compareInstances(ever, settled, mayBe);
  const name = `("${current.schedule}" in ${current.timeZone})`;
  return [
    ...missing.map((atMs) => `${name} has no instance at ${new Date(atMs).toISOString()}`),
    ...[...wrong, ...wrongSettled].map(
      (atMs) => `${name} has an instance at ${new Date(atMs).toISOString()}`,
    ),
  ];
}

/** From the journal's clock to that of everybody. */
export function everybodysMs(journalMs: number): number {
  return performance.timeOrigin + journalMs;
}
