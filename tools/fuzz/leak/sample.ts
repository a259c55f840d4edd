import { readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import pg from 'pg';
import type { ServiceName } from '#platform/programs.ts';
import type { Series } from './slope.ts';

/** What is under watch. */
export interface Subject {
  readonly pids: Readonly<Record<ServiceName, number>>;
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
// Two samples of an idle process differ by that much; a leak of 1 kB in each of a thousand requests per sample shows within minutes.
const HEAP = { share: 0.03, slack: 3 };
// Pages stay with the process after a burst; what leaks shows in the heap first.
const RESIDENT = { share: 0.08, slack: 15 };
// Connections come and go with the load's own.
const COUNT = { share: 0, slack: 4 };

/** Takes samples and keeps them as one series per thing. */
export class Sampler {
  readonly #subject: Subject;
  readonly #series = new Map<string, { unit: Series['unit']; bound: Series['bound']; values: number[] }>();

  constructor(subject: Subject) {
    this.#subject = subject;
  }

  get series(): readonly Series[] {
    return [...this.#series].map(([name, rest]) => ({ name, ...rest }));
  }

  /** Measures everything once. To be called while no request is in flight: what a request holds is no leak. */
  async take(): Promise<void> {
    for (const [name, pid] of Object.entries(this.#subject.pids)) {
      const facts = await this.#ask(pid);
      this.#enter(`${name}: heap`, 'MB', HEAP, facts.heapUsed / MEGABYTE);
      this.#enter(`${name}: external`, 'MB', HEAP, facts.external / MEGABYTE);
      this.#enter(`${name}: resident`, 'MB', RESIDENT, facts.rss / MEGABYTE);
      this.#enter(`${name}: open files`, '', COUNT, readdirSync(`/proc/${pid}/fd`).length);
      const resources = Object.values(facts.resources).reduce((sum, count) => sum + count, 0);
      this.#enter(`${name}: event-loop resources`, '', COUNT, resources);
    }
    await this.#database();
    await this.#broker();
  }

  async #ask(pid: number): Promise<ProcessFacts> {
    const socket = connect(join(this.#subject.probeFolder, `${pid}.sock`));
    return JSON.parse(await text(socket)) as ProcessFacts;
  }

  async #database(): Promise<void> {
    const client = new pg.Client({ connectionString: this.#subject.databaseUrl });
    await client.connect();
    const { rows } = await client.query<{ count: string }>(
      `SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`,
    );
    await client.end();
    this.#enter('PostgreSQL: connections', '', COUNT, Number(rows[0]?.count));
  }

  async #broker(): Promise<void> {
    const { username, password, origin } = new URL(this.#subject.managementUrl);
    const credentials = Buffer.from(`${username}:${decodeURIComponent(password)}`).toString('base64');
    const response = await fetch(`${origin}/api/overview`, {
      headers: { authorization: `Basic ${credentials}` },
    });
    const { object_totals: totals } = (await response.json()) as { object_totals: Record<string, number> };
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
