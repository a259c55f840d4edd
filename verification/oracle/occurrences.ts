import { cronFields, matchesWallTime } from './cron-fields.ts';
import type { OffsetSpan } from './zone-offsets.ts';

const MINUTE_MS = 60_000;
const DATE_LENGTH = '2026-12-25'.length;

/**
 * The instants at which a cron expression is due, ascending, found by trying every minute of the spans.
 *
 * A listed hour names wall-clock time: of a time that comes twice the first counts, and one that a gap leaves
 * out comes later by the length of the gap. An expression for every hour means elapsed time: nothing moves,
 * and a repeated hour counts twice.
 * @param spans of its zone, without holes; clock changes at their edges are not seen
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
    // What the clocks skip, if they are put forward here.
    for (let wallMs = toMs + offsetMs; wallMs < toMs + next.offsetMs; wallMs += MINUTE_MS)
      if (isDue(wallMs)) found.add(wallMs - offsetMs);
  }
  return [...found].sort((left, right) => left - right);
}

function localDate(wallMs: number): string {
  return new Date(wallMs).toISOString().slice(0, DATE_LENGTH);
}
