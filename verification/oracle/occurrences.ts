import { cronFields, matchesWallTime } from './cron-fields.ts';
import type { OffsetSpan } from './zone-offsets.ts';

const MINUTE_MS = 60_000;
const DATE_LENGTH = '2026-12-25'.length;

/**
 * The instants at which a cron expression is due, ascending, found by trying every minute of the spans.
 *
 * An expression that lists hours means wall-clock time: a repeated wall-clock time is due only the first
 * time, and one skipped by a gap is due later by the length of the gap. An expression for every hour means
 * elapsed time: no occurrence moves, and a repeated hour is due twice.
 * @param spans the offsets of its zone, contiguous. Clock changes at their outer edges are ignored.
 * @param excludedDates local dates on which it is not due, e.g. `2026-12-25`
 */
export function occurrencesOf(
  cron: string,
  spans: readonly OffsetSpan[],
  excludedDates: ReadonlySet<string> = new Set(),
): number[] {
  const fields = cronFields(cron);
  const isDue = (wallMs: number): boolean =>
    matchesWallTime(fields, wallMs) && !excludedDates.has(localDate(wallMs));
  const found = new Set<number>();
  const seenWallTimes = new Set<number>();
  for (const [index, { fromMs, toMs, offsetMs }] of spans.entries()) {
    for (let atMs = Math.ceil(fromMs / MINUTE_MS) * MINUTE_MS; atMs < toMs; atMs += MINUTE_MS) {
      const wallMs = atMs + offsetMs;
      if (!isDue(wallMs)) continue;
      if (fields.isElapsedTime || !seenWallTimes.has(wallMs)) found.add(atMs);
      seenWallTimes.add(wallMs);
    }
    const next = spans[index + 1];
    if (next === undefined || fields.isElapsedTime) continue;
    // The wall-clock times that are skipped if clocks move forward here.
    for (let wallMs = toMs + offsetMs; wallMs < toMs + next.offsetMs; wallMs += MINUTE_MS)
      if (isDue(wallMs)) found.add(wallMs - offsetMs);
  }
  return [...found].sort((left, right) => left - right);
}

function localDate(wallMs: number): string {
  return new Date(wallMs).toISOString().slice(0, DATE_LENGTH);
}
