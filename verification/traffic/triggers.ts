import { occurrencesOf } from '#verification/oracle/occurrences.ts';
import type { Zones } from '#verification/oracle/zones.ts';
import type { FiresEnded, Journal, PlantedTrigger } from './journal.ts';
import { type PlatformUnderLoad, queryPersistently } from './platform.ts';

export const FIRST_PLANTED_FACILITY = 100_000;

/** A kind of trigger. */
interface TriggerKind {
  readonly schedule: string;
  readonly timeZone: string;
  /** Number of its occurrences that are due when it is planted. */
  readonly due: number;
  /**
   * Number of days before now in which these occurrences are searched. It is low, because the search blocks
   * this process, in which the proxies of a run also work.
   */
  readonly days: number;
}

const DAY_MS = 86_400_000;

/**
 * Triggers by minute and hour fire for each missed occurrence. Triggers by day and month are more than 90
 * minutes late and fire once for all missed occurrences.
 */
const KINDS: readonly TriggerKind[] = [
  { schedule: '* * * * *', timeZone: 'UTC', due: 8, days: 1 },
  { schedule: '3-59/5 * * * *', timeZone: 'Asia/Kathmandu', due: 6, days: 1 },
  { schedule: '10 * * * *', timeZone: 'Asia/Kathmandu', due: 1, days: 1 },
  { schedule: '*/20 * * * *', timeZone: 'Australia/Adelaide', due: 3, days: 1 },
  { schedule: '30 2 * * *', timeZone: 'Europe/Berlin', due: 3, days: 5 },
  { schedule: '0 6 1 * *', timeZone: 'America/New_York', due: 2, days: 65 },
];

/** Inserts triggers with the column values that the service itself would write. Idempotent. */
const PLANT = `
  INSERT INTO task.triggers (facility_id, trigger_name, trigger_group, job_name, schedule, time_zone, next_fire_at)
  SELECT facility_id, 'facility-' || facility_id, 'TaskInstanceGeneration', 'GenerateTaskInstancesSchedule', schedule, time_zone,
    to_timestamp(first_due_ms / 1000)
  FROM unnest($1::bigint[], $2::text[], $3::text[], $4::float8[]) AS planted (facility_id, schedule, time_zone, first_due_ms)
  ON CONFLICT (facility_id) DO NOTHING`;

const NOW = `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS "nowMs"`;

/**
 * Inserts triggers with occurrences that are already due, because a run of a few minutes cannot wait for
 * them. They then fire like any other trigger. The first one fires each minute.
 */
export async function plantTriggers(
  platform: PlatformUnderLoad,
  journal: Journal,
  zones: Zones,
  count: number,
): Promise<PlantedTrigger[]> {
  const first = FIRST_PLANTED_FACILITY + journal.planted.length;
  const planted = Array.from({ length: count }, (_, index) => {
    const kind = KINDS[index % KINDS.length] as TriggerKind;
    const { schedule, timeZone, due, days } = kind;
    const spans = zones.spansWithin(timeZone, Date.now() - days * DAY_MS, Date.now());
    const firstDueAtMs = occurrencesOf(schedule, spans).at(-due);
    if (firstDueAtMs === undefined) throw new Error(`"${schedule}" in ${timeZone} was not due ${due} times`);
    return { facilityId: first + index, schedule, timeZone, firstDueAtMs };
  });
  const columns = [
    planted.map(({ facilityId }) => facilityId),
    planted.map(({ schedule }) => schedule),
    planted.map(({ timeZone }) => timeZone),
    planted.map(({ firstDueAtMs }) => firstDueAtMs),
  ];
  const [row] = await queryPersistently<{ nowMs: number }>(platform, 'task', [PLANT, columns], NOW);
  const stored = planted.map((trigger) => ({ ...trigger, plantedAtMs: row?.nowMs ?? NaN }));
  journal.planted.push(...stored);
  return stored;
}

/** The database's clock, in ms since 1970. */
export async function databaseNowMs(platform: PlatformUnderLoad): Promise<number> {
  const [row] = await queryPersistently<{ nowMs: number }>(platform, 'task', NOW);
  return row?.nowMs ?? NaN;
}

/**
 * Pauses every trigger. The messages of the last fires may still be in transit.
 * @param watchedUntilMs see `FiresEnded`
 */
export async function pauseTriggers(
  platform: PlatformUnderLoad,
  watchedUntilMs: number,
): Promise<FiresEnded> {
  const [row] = await queryPersistently<{ nowMs: number }>(
    platform,
    'task',
    `UPDATE task.triggers SET state = 'PAUSED'`,
    NOW,
  );
  return { watchedUntilMs, pausedAtMs: row?.nowMs ?? NaN };
}
