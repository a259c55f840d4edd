import type { Occurrence } from '../instances/instances.repository';
import { parseCronExpression } from '../schedules/cron-expression';
import { occurrencesBetween } from '../schedules/occurrences';
import type { GeneratingSchedule } from '../schedules/schedules.repository';
import { timeZone } from '../schedules/time-zone';

/** Every occurrence of the schedules in (generatedUntil, horizonAt]. Schedules with the same cron, zone and span, the rule
 *  within a facility, are computed once. */
export function* dueOccurrences(schedules: readonly GeneratingSchedule[]): Generator<Occurrence> {
  const known = new Map<string, Date[]>();
  for (const { scheduleId, schedule, timeZone: zone, generatedUntil, horizonAt } of schedules) {
    const key = JSON.stringify([schedule, zone, generatedUntil.getTime(), horizonAt.getTime()]);
    let dueInstants = known.get(key);
    if (!dueInstants) {
      dueInstants = occurrencesBetween(
        parseCronExpression(schedule),
        timeZone(zone),
        generatedUntil,
        horizonAt,
      );
      known.set(key, dueInstants);
    }
    for (const dueAt of dueInstants) yield { scheduleId, dueAt };
  }
}
