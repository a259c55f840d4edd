import { type OffsetSpan, type Query, readZoneOffsets } from './zone-offsets.ts';

const DAY_MS = 86_400_000;

/** The UTC offsets of a run's time zones, for some days around the run. */
export class Zones {
  readonly #spans: ReadonlyMap<string, readonly OffsetSpan[]>;

  private constructor(spans: ReadonlyMap<string, readonly OffsetSpan[]>) {
    this.#spans = spans;
  }

  /** Reads the offsets from the database. @param days number of days before and after now */
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

  /** The spans of a zone, clipped to a period. */
  spansWithin(name: string, fromMs: number, toMs: number): readonly OffsetSpan[] {
    return this.spansOf(name)
      .filter((span) => span.toMs > fromMs && span.fromMs < toMs)
      .map((span) => ({
        ...span,
        fromMs: Math.max(span.fromMs, fromMs),
        toMs: Math.min(span.toMs, toMs),
      }));
  }

  /** The local date of an instant in a zone, e.g. `2026-12-25`. */
  localDate(name: string, atMs: number): string {
    const span = this.spansOf(name).findLast(({ fromMs }) => fromMs <= atMs);
    if (span === undefined)
      throw new Error(`the offset of ${name} at ${new Date(atMs).toISOString()} was not read`);
    return new Date(atMs + span.offsetMs).toISOString().slice(0, '2026-12-25'.length);
  }

  /**
   * The next clock change in any of these zones after an instant, in the given direction if there is one.
   * Null if the offsets that were read have no such change.
   */
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

/** The direction of a clock change. Forward skips a local time, back repeats one. */
export type ClockChange = 'forward' | 'back';

interface FoundChange {
  readonly timeZone: string;
  readonly atMs: number;
}
