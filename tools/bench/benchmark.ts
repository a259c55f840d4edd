import type { PrivateServers } from '#platform/test-platform.ts';

/** Somebody who does the work: our service, a peer, or the bare machinery under both. */
export interface Contestant {
  /** Short name in tables: `settings-service`, `bare server`. */
  readonly name: string;
  /** What exactly this side does, in a sentence. */
  readonly does: string;
  /** Does the work for about `seconds` and gives its figure, in the contest's unit. @throws when an answer is not the expected one */
  readonly measure: (seconds: number) => Promise<number>;
}

/** A goal: the ratio of one contestant's figure to another's, or to a constant. */
export interface Comparison {
  /** What is compared, when a contest has more than one comparison. */
  readonly title: string;
  /** Name of the contestant that is judged. */
  readonly of: string;
  /** Name of the contestant it is measured against, or a constant in the contest's unit. */
  readonly against: string | number;
  readonly goal: { readonly atLeast: number } | { readonly atMost: number };
}

/** Contestants that are ready to work, in turns. */
export interface Contest {
  /** Unit of every figure, e.g. `requests/s`. */
  readonly unit: string;
  readonly contestants: readonly Contestant[];
  readonly comparisons: readonly Comparison[];
  /** What a reader must know to judge the figures: payload, connections, durability. */
  readonly conditions: readonly string[];
  /** Work that every round repeats but that has no end of its own (a start, a fixed amount of work) needs fewer rounds. */
  readonly maxRounds?: number;
  close(): Promise<void>;
}

/** Ends things one after the other: what loads a server before the server. */
export function closing(
  ...parts: readonly (
    { close(): Promise<unknown> } | { stop(): Promise<unknown> } | { end(): Promise<unknown> }
  )[]
): () => Promise<void> {
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
  /** Runs when the other benchmarks' servers have ended: what they have left to do, e.g. vacuum, would take its processors. Comes last. */
  readonly standsAlone?: true;
  /** @param servers closed where a benchmark stands alone */
  prepare(servers: PrivateServers): Promise<Contest>;
}
