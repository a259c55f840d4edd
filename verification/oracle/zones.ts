import { type OffsetSpan, type Query, readZoneOffsets } from './zone-offsets.ts';

const DAY_MS = 86_400_000;

/** The zones of a run, with their offsets around it. */
export class Zones {
  readonly #spans: ReadonlyMap<string, readonly OffsetSpan[]>;

  private constructor(spans: ReadonlyMap<string, readonly OffsetSpan[]>) {
    this.#spans = spans;
  }

  /** @param days how far back and ahead of now offsets are wanted */
  static async read(
    query: Query,
    names: Iterable<string>,
    days: { readonly back: number; readonly ahead: number },
  ): Promise<Zones> {
    const [fromMs, toMs] = [Date.now() - days.back * DAY_MS, Date.now() + days.ahead * DAY_MS];
    const spans = new Map<string, OffsetSpan[]>();
    for (const name of new Set(names)) spans.set(name, await readZoneOffsets(query, name, fromMs, toMs));
    return new Zones(spans);
  }

  /** @throws {Error} for a zone that was not read */
  spansOf(name: string): readonly OffsetSpan[] {
    const spans = this.#spans.get(name);
    if (spans === undefined) throw new Error(`the offsets of ${name} were not read`);
    return spans;
  }

  /** What of the spans of a zone is within a time. */
  spansWithin(name: string, fromMs: number, toMs: number): readonly OffsetSpan[] {
    return this.spansOf(name)
      .filter((span) => span.toMs > fromMs && span.fromMs < toMs)
      .map((span) => ({
        ...span,
        fromMs: Math.max(span.fromMs, fromMs),
        toMs: Math.min(span.toMs, toMs),
      }));
  }

  /** The date in a zone, e.g. `2026-12-25`. */
  localDate(name: string, atMs: number): string {
    const span = this.spansOf(name).findLast(({ fromMs }) => fromMs <= atMs);
    if (span === undefined)
      throw new Error(`the offset of ${name} at ${new Date(atMs).toISOString()} was not read`);
    return new Date(atMs + span.offsetMs).toISOString().slice(0, '2026-12-25'.length);
  }

  /** Where and when, of these zones, clocks change next, or are put this way next; null when they are not
   *  within what was read. */
  nextClockChange(names: readonly string[], afterMs: number, direction?: ClockChange): FoundChange | null {
    const changes = names.flatMap((timeZone) =>
      changesOf(this.spansOf(timeZone)).map((change) => ({ timeZone, ...change })),
    );
    const sought = changes.filter(
      (change) => change.atMs > afterMs && (direction === undefined || change.direction === direction),
    );
    return sought.toSorted((one, other) => one.atMs - other.atMs)[0] ?? null;
  }
}

function changesOf(spans: readonly OffsetSpan[]): { atMs: number; direction: ClockChange }[] {
  return spans.slice(1).map(({ fromMs, offsetMs }, index) => ({
    atMs: fromMs,
    direction: offsetMs > (spans[index]?.offsetMs ?? 0) ? 'forward' : 'back',
  }));
}

/** Which way clocks are put: a gap in local time, or a time that comes twice. */
export type ClockChange = 'forward' | 'back';

interface FoundChange {
  readonly timeZone: string;
  readonly atMs: number;
}
