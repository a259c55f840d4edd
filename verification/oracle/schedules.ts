import { occurrencesOf } from './occurrences.ts';
import type { Zones } from './zones.ts';

/** The members of a schedule request that decide when the schedule is due. */
export interface Recurrence {
  readonly schedule: string;
  readonly timeZone: string;
  /** The first local date on which it may be due. */
  readonly startDate?: string;
  /** The last local date on which it may be due. */
  readonly endDate?: string;
  /** Local dates that its calendar excludes. */
  readonly excludedDates?: readonly string[];
}

/**
 * Computes the due instants of recurrences, within the time for which zone offsets were read. Memoises them.
 */
export class DueInstants {
  readonly #zones: Zones;
  readonly #known = new Map<string, readonly number[]>();

  constructor(zones: Zones) {
    this.#zones = zones;
  }

  of(recurrence: Recurrence): readonly number[] {
    const { schedule, timeZone, startDate = '', endDate = '9999', excludedDates = [] } = recurrence;
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
