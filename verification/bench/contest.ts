import { type Spread, spreadOf } from '#platform/statistics.ts';
import type { PrivateServers } from '#platform/test-platform.ts';
import { processorsBusy, processorTime, type ProcessorTime } from './processor-time.ts';

/** One side of a contest: our service, a peer, or the bare libraries under both. */
export interface Contestant {
  /** Short name in tables: `settings-service`, `bare server`. */
  readonly name: string;
  /** Describes exactly what this side does, in a sentence. */
  readonly does: string;
  /**
   * Does the work for about `seconds`. Returns its figure in the contest's unit.
   * @throws if a response is not the expected one
   */
  readonly measure: (seconds: number) => Promise<number>;
}

/** One side of a comparison: a contestant's figure, or the quotient of two contestants' figures. */
export type Side = string | readonly [of: string, against: string];

/** A comparison with a goal for the ratio of its two sides. */
export interface Comparison {
  /** Distinguishes the comparisons of a contest. */
  readonly title: string;
  /** The side that is judged: the dividend of the ratio. */
  readonly of: Side;
  /** The divisor: another side, or a constant in the contest's unit. */
  readonly against: Side | number;
  readonly goal: { readonly atLeast: number } | { readonly atMost: number };
}

/** Contestants that are ready to be measured in turn. */
export interface Contest {
  /** Unit of every figure, e.g. `requests/s`. */
  readonly unit: string;
  readonly contestants: readonly Contestant[];
  readonly comparisons: readonly Comparison[];
  /** Facts that a reader needs to interpret the figures: payload, connections, durability. */
  readonly conditions: readonly string[];
  /**
   * Maximum number of rounds. Set for work whose duration is not `seconds`, e.g. a start or a fixed amount of
   * work, which needs fewer rounds.
   */
  readonly maxRounds?: number;
  close(): Promise<void>;
}

/** The usual contest: the first contestant is ours, and is judged against the second. */
export function firstAgainstSecond(
  title: string,
  goal: Comparison['goal'],
  contestants: readonly Contestant[],
): Pick<Contest, 'contestants' | 'comparisons'> {
  const [ours, other] = contestants;
  return { contestants, comparisons: [{ title, of: ours!.name, against: other!.name, goal }] };
}

type Closable = { close(): Promise<unknown> } | { stop(): Promise<unknown> } | { end(): Promise<unknown> };

/** Returns a function that closes the parts in order. Pass load generators before their servers. */
export function closing(...parts: readonly Closable[]): () => Promise<void> {
  return async () => {
    for (const part of parts) {
      if ('close' in part) await part.close();
      else await ('stop' in part ? part.stop() : part.end());
    }
  };
}

/** One row of the performance table. */
export interface Benchmark {
  /** Name on the command line and in the table. */
  readonly id: string;
  readonly title: string;
  /**
   * True: runs after the servers of the other benchmarks have ended, because their background work, e.g.
   * vacuum, would take processor time from it. Such a benchmark must come last.
   */
  readonly standsAlone?: true;
  /** @param servers already closed if `standsAlone` */
  prepare(servers: PrivateServers): Promise<Contest>;
}

/** The result of a contest. */
export type ContestResult = Awaited<ReturnType<typeof runContest>>;

/** A comparison with its ratio, round by round. */
export interface ComparisonResult extends Comparison {
  readonly ratio: Spread;
  readonly met: boolean;
}

/**
 * Measures the contestants in turn. Each round reverses the order, so that drift of the machine affects all
 * equally. A warm-up round comes first, unless there is only one round.
 */
export async function runContest(
  contest: Contest,
  { rounds, seconds }: { readonly rounds: number; readonly seconds: number },
  progress: (line: string) => void,
) {
  const sides = contest.contestants.map((contestant) => ({
    ...contestant,
    figures: [] as number[],
    busy: [] as ProcessorTime[],
  }));
  const measured = Math.min(rounds, contest.maxRounds ?? rounds);
  for (let round = measured > 1 ? 0 : 1; round <= measured; round += 1) {
    for (const { name, measure, figures, busy } of round % 2 === 0 ? sides.toReversed() : sides) {
      const watched = await watch(() => measure(seconds));
      if (round > 0) figures.push(watched.figure);
      if (round > 0 && watched.busy !== null) busy.push(watched.busy);
      const which = round > 0 ? `round ${round}/${measured}` : 'warm-up';
      progress(`${which}  ${name}: ${formatFigure(watched.figure)} ${contest.unit}`);
    }
  }
  const figuresOf = new Map(sides.map(({ name, figures }) => [name, figures]));
  return {
    unit: contest.unit,
    conditions: contest.conditions,
    contestants: sides.map(({ name, does, figures, busy }) => {
      // Busy processors, as medians of the rounds. Null on systems without /proc.
      return { name, does, figures, spread: spreadOf(figures), processors: medianOf(busy) };
    }),
    comparisons: contest.comparisons.map((comparison) => judge(comparison, figuresOf)),
  };
}

async function watch(
  measure: () => Promise<number>,
): Promise<{ figure: number; busy: ProcessorTime | null }> {
  const before = processorTime();
  const startedAtMs = performance.now();
  const figure = await measure();
  const seconds = (performance.now() - startedAtMs) / 1_000;
  const after = processorTime();
  return { figure, busy: before === null || after === null ? null : processorsBusy(before, after, seconds) };
}

function medianOf(rounds: readonly ProcessorTime[]): ProcessorTime | null {
  if (rounds.length === 0) return null;
  const median = (role: keyof ProcessorTime): number => spreadOf(rounds.map((round) => round[role])).median;
  return {
    program: median('program'),
    postgresql: median('postgresql'),
    rabbitmq: median('rabbitmq'),
    load: median('load'),
  };
}

/**
 * Computes the ratio of each round, whose figures were measured in succession, and judges the median by the
 * goal.
 */
export function judge(
  comparison: Comparison,
  figures: ReadonlyMap<string, readonly number[]>,
): ComparisonResult {
  const { of, against, goal } = comparison;
  const figureOf = (side: Side | number, round: number): number => {
    if (typeof side === 'number') return side;
    if (typeof side !== 'string') return figureOf(side[0], round) / figureOf(side[1], round);
    const figure = figures.get(side)?.[round];
    if (figure === undefined) throw new RangeError(`${side} has no figure for round ${round + 1}`);
    return figure;
  };
  const rounds = figures.get(typeof of === 'string' ? of : of[0]) ?? [];
  const ratios = rounds.map((_figure, round) => figureOf(of, round) / figureOf(against, round));
  const ratio = spreadOf(ratios);
  return {
    ...comparison,
    ratio,
    met: 'atLeast' in goal ? ratio.median >= goal.atLeast : ratio.median <= goal.atMost,
  };
}

/** The highest medians so far of sides that ours is compared with by rate, keyed by `<benchmark>, <name>`. */
export type BestSeen = Readonly<Record<string, number>>;

/**
 * Merges a run into the best medians so far. `slowSides` lists sides that reached less than half of theirs.
 */
export function compareWithBest(
  benchmarks: readonly { readonly id: string; readonly result: ContestResult }[],
  before: BestSeen,
): { readonly bestSeen: BestSeen; readonly slowSides: readonly string[] } {
  const bestSeen: Record<string, number> = { ...before };
  const slowSides: string[] = [];
  for (const { id, result } of benchmarks) {
    const against = new Set<unknown>(
      result.comparisons.filter(({ goal }) => 'atLeast' in goal).map((each) => each.against),
    );
    for (const { name, spread } of result.contestants.filter((each) => against.has(each.name))) {
      const side = `${id}, ${name}`;
      const best = Math.max(before[side] ?? 0, spread.median);
      bestSeen[side] = best;
      if (spread.median < best / 2)
        slowSides.push(
          `${side}: ${formatFigure(spread.median)} ${result.unit}, ${formatFigure(best)} at best`,
        );
    }
  }
  return { bestSeen, slowSides };
}

/** Formats a figure with three significant digits below 1000, and as a whole number above. */
export function formatFigure(value: number): string {
  if (Math.abs(value) >= 1_000) return Math.round(value).toLocaleString('en-US');
  return String(Number(value.toPrecision(3)));
}
