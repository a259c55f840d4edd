import { occurrencesOf } from './occurrences.ts';
import type { Zones } from './zones.ts';

/** What a caller said when it created a schedule. */
export interface ScheduleSaid {
  readonly schedule: string;
  readonly timeZone: string;
  /** Local date, the first on which it may be due. */
  readonly startDate?: string;
  /** Local date, the last on which it may be due. */
  readonly endDate?: string;
  /** Local dates of its calendar. */
  readonly excludedDates?: readonly string[];
}

/** Every instant at which schedules are due, within what was read of their zones. Equal ones are computed
 *  once. */
export class DueInstants {
  readonly #zones: Zones;
  readonly #known = new Map<string, readonly number[]>();

  constructor(zones: Zones) {
    this.#zones = zones;
  }

  of(said: ScheduleSaid): readonly number[] {
    const { schedule, timeZone, startDate = '', endDate = '9999', excludedDates = [] } = said;
    const key = JSON.stringify([schedule, timeZone, startDate, endDate, excludedDates]);
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const zones = this.#zones;
    const due = occurrencesOf(schedule, zones.spansOf(timeZone), new Set(excludedDates)).filter((atMs) => {
      const date = zones.localDate(timeZone, atMs);
      return date >= startDate && date <= endDate;
    });
    this.#known.set(key, due);
    return due;
  }
}
