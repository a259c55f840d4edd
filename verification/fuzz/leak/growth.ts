import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { BrokerManagement } from '#platform/broker-management.ts';
import { queryAt } from '#platform/postgresql.ts';
import { countOpenFiles } from '#platform/proc.ts';
import { median } from '#platform/statistics.ts';

export interface Series {
  readonly name: string;
  readonly unit: 'MB' | '';
  readonly values: readonly number[];
  /** Allowed growth in the second half of a run: `share` of its mean, or `slack` if that is more. */
  readonly bound: Bound;
}

interface Bound {
  readonly share: number;
  readonly slack: number;
}

export interface Verdict {
  readonly name: string;
  readonly unit: string;
  readonly first: number;
  readonly middle: number;
  readonly last: number;
  readonly highest: number;
  /** Rise of the line fitted to the second half, from its beginning to its end. */
  readonly growth: number;
  readonly allowed: number;
  readonly levelsOff: boolean;
}

/**
 * Judges whether a series levels off: a line fitted to its second half must not rise by more than its bound.
 * The first half is warm-up, in which caches, pools and compiled code grow.
 * @throws {RangeError} for fewer than four values
 */
export function judgeSeries({ name, unit, values, bound }: Series): Verdict {
  if (values.length < 4) throw new RangeError(`${name}: ${values.length} values are too few`);
  const half = values.slice(Math.floor(values.length / 2));
  const mean = half.reduce((sum, value) => sum + value, 0) / half.length;
  const growth = slopeOf(half) * (half.length - 1);
  const allowed = Math.max(bound.slack, bound.share * mean);
  const [first = 0] = values;
  const [middle = 0] = half;
  const last = values.at(-1) ?? 0;
  const highest = Math.max(...values);
  return { name, unit, first, middle, last, highest, growth, allowed, levelsOff: growth <= allowed };
}

/** Median of the slopes between all pairs of values (Theil–Sen), per step. Robust against outliers. */
export function slopeOf(values: readonly number[]): number {
  return median(
    values.flatMap((from, start) =>
      values.slice(start + 1).map((to, distance) => (to - from) / (distance + 1)),
    ),
  );
}

export interface Subject {
  readonly pids: Readonly<Record<string, number>>;
  readonly probeFolder: string;
  readonly databaseUrl: string;
  readonly managementUrl: string;
}

interface ProcessFacts {
  readonly rss: number;
  readonly heapUsed: number;
  readonly external: number;
  readonly resources: Readonly<Record<string, number>>;
}

const MEGABYTE = 1_000_000;
// Two samples of an idle process differ by up to 3 MB. A leak of 1 kB per request shows within minutes, at a
// thousand requests per sample.
const HEAP = { share: 0.03, slack: 3 };
// A process keeps memory pages after a burst. A leak shows in the heap first.
const RESIDENT = { share: 0.08, slack: 15 };
// The number of connections varies with the load.
const COUNT = { share: 0, slack: 4 };

/** Takes samples, and keeps a series for each measured quantity. */
export class Sampler {
  readonly #subject: Subject;
  readonly #series = new Map<string, { unit: Series['unit']; bound: Series['bound']; values: number[] }>();

  constructor(subject: Subject) {
    this.#subject = subject;
  }

  get series(): readonly Series[] {
    return [...this.#series].map(([name, rest]) => ({ name, ...rest }));
  }

  /**
   * Takes one sample of everything. No request may be in flight, because memory held by a request is not a
   * leak.
   */
  async take(): Promise<void> {
    for (const [name, pid] of Object.entries(this.#subject.pids)) {
      const facts = await this.#readProbe(pid);
      this.#enter(`${name}: heap`, 'MB', HEAP, facts.heapUsed / MEGABYTE);
      this.#enter(`${name}: external`, 'MB', HEAP, facts.external / MEGABYTE);
      this.#enter(`${name}: resident`, 'MB', RESIDENT, facts.rss / MEGABYTE);
      this.#enter(`${name}: open files`, '', COUNT, countOpenFiles(pid));
      const resources = Object.values(facts.resources).reduce((sum, count) => sum + count, 0);
      this.#enter(`${name}: event-loop resources`, '', COUNT, resources);
    }
    await this.#database();
    await this.#broker();
  }

  async #readProbe(pid: number): Promise<ProcessFacts> {
    const socket = connect(join(this.#subject.probeFolder, `${pid}.sock`));
    return JSON.parse(await text(socket)) as ProcessFacts;
  }

  async #database(): Promise<void> {
    const [row] = await queryAt<{ count: string }>(
      this.#subject.databaseUrl,
      `SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`,
    );
    this.#enter('PostgreSQL: connections', '', COUNT, Number(row?.count));
  }

  async #broker(): Promise<void> {
    const { object_totals: totals } = await new BrokerManagement(this.#subject.managementUrl, '/').overview();
    for (const thing of ['connections', 'channels', 'consumers', 'queues', 'exchanges']) {
      this.#enter(`RabbitMQ: ${thing}`, '', COUNT, totals[thing] ?? 0);
    }
  }

  #enter(name: string, unit: Series['unit'], bound: Series['bound'], value: number): void {
    const known = this.#series.get(name) ?? { unit, bound, values: [] };
    known.values.push(value);
    this.#series.set(name, known);
  }
}
