import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { DASHBOARDS } from '#observability/dashboards.ts';
import { ruleGroups } from '#observability/generated.ts';
import { dashboardPicture, type Line } from '#observability/picture.ts';
import { FriendlyError } from '#platform/errors.ts';
import { findFreePorts } from '#platform/ports.ts';
import { findPrometheus } from '#platform/prometheus.ts';
import { waitUntilReady } from '#platform/supervisor.ts';
import { respondsOk, eventually } from '#platform/waiting.ts';
import { type Check, CheckBuilder } from '#verification/audit/check.ts';
import type { Testbed } from './testbed.ts';

/** Short, because runs last only a few minutes. */
const INTERVAL = '1s';
const READY_TIMEOUT_MS = 30_000;
/** Number of points of a line in a drawn dashboard. */
const POINTS = 80;
/** Time to wait for data: a rate needs two samples, and some metrics first change during the audit itself. */
const SCRAPED_TWICE = { timeoutMs: 5_000, intervalMs: 500 };
/**
 * Metrics without data in a run: no run activates a signing key, hits a rate limit or has a message returned.
 */
const MAY_BE_EMPTY = /auth_signing_key_activated|auth_token_rate_limited|messaging_returned/;

interface ApiResponse<T> {
  readonly data: T;
}

/** A Prometheus that scrapes every replica and evaluates the alert rules. */
export class Prometheus {
  readonly #url: string;
  readonly #startedAtSeconds = Date.now() / 1_000;

  private constructor(url: string) {
    this.#url = url;
  }

  /** Starts a Prometheus that ends with the testbed. @throws {FriendlyError} if there is none on the PATH */
  static async start(testbed: Testbed): Promise<Prometheus> {
    const command = findPrometheus('prometheus');
    if (command === null)
      throw new FriendlyError('There is no prometheus on the PATH; .ci/install promtool installs it.');
    const { folder: parent, supervisor } = testbed.place;
    const folder = join(parent, 'prometheus');
    mkdirSync(folder);
    const [port = 0] = await findFreePorts(1);
    writeFileSync(join(folder, 'rules.yaml'), stringify(promptRules()));
    writeFileSync(join(folder, 'prometheus.yaml'), stringify(configuration(testbed, folder)));
    const args = [
      `--config.file=${folder}/prometheus.yaml`,
      `--storage.tsdb.path=${folder}/data`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--log.level=warn',
    ];
    const spec = { name: 'prometheus', stage: 0, command, args, env: process.env, cwd: folder };
    const url = `http://127.0.0.1:${port}`;
    await waitUntilReady(await supervisor.spawn(spec), respondsOk(`${url}/-/ready`), READY_TIMEOUT_MS);
    return new Prometheus(url);
  }

  /**
   * Checks that each dashboard query has data (except for `MAY_BE_EMPTY`), and that each rule can be
   * evaluated.
   * @param alerts names of alerts that must have fired
   */
  async audit(alerts: readonly string[]): Promise<Check> {
    const check = new CheckBuilder('dashboards: each query has data; rules are evaluated');
    const queries = DASHBOARDS.flatMap(({ title, panels }) =>
      panels.flatMap((panel) =>
        panel.queries
          .filter(({ expr }) => !MAY_BE_EMPTY.test(expr))
          .map(({ expr }) => ({ name: `${title}, ${panel.title}`, expr })),
      ),
    );
    for (const { name, expr } of queries) {
      // An alert may no longer be active, so look back.
      const query = expr.includes('ALERTS') ? `last_over_time((${expr})[1h:1s])` : expr;
      const expectData = async (): Promise<void> => {
        if ((await this.#query(query)).length === 0) throw new Error(`${name}: no data from ${expr}`);
      };
      await eventually(expectData, SCRAPED_TWICE).catch((error: Error) => check.wrong(error.message));
    }
    const { groups } = await this.#get<{
      groups: { rules: { name: string; health: string; lastError?: string }[] }[];
    }>('/api/v1/rules');
    const rules = groups.flatMap((group) => group.rules);
    for (const { name, health, lastError } of rules)
      if (health !== 'ok') check.wrong(`rule ${name} is ${health}: ${lastError ?? ''}`);
    const fired = await this.#query('count by (alertname) (last_over_time(ALERTS{alertstate="firing"}[1h]))');
    const names = fired.map(({ metric }) => metric['alertname']);
    for (const alert of alerts) if (!names.includes(alert)) check.wrong(`${alert} did not fire`);
    return check.done(queries.length + rules.length, queries.length + rules.length);
  }

  /** Draws each dashboard, from the start of the run until now, into an SVG file named by its uid. */
  async draw(folder: string): Promise<void> {
    mkdirSync(folder, { recursive: true });
    for (const { uid, title, panels } of DASHBOARDS) {
      const drawn = panels.map(async ({ queries, ...panel }) => {
        const lines = await Promise.all(queries.map((query) => this.#lines(query)));
        return { ...panel, lines: lines.flat() };
      });
      writeFileSync(join(folder, `${uid}.svg`), dashboardPicture(title, await Promise.all(drawn)));
    }
  }

  async #lines({ expr, legend }: { expr: string; legend: string }): Promise<Line[]> {
    const end = Date.now() / 1_000;
    const start = this.#startedAtSeconds;
    const range = { start: String(start), end: String(end), step: String((end - start) / POINTS) };
    const query = new URLSearchParams({ query: expr, ...range }).toString();
    const { result } = await this.#get<{
      result: { metric: Record<string, string>; values: [number, string][] }[];
    }>(`/api/v1/query_range?${query}`);
    return result.map(({ metric, values }) => ({
      name: legend.replace(/\{\{(\w+)\}\}/g, (_all, label: string) => metric[label] ?? ''),
      points: values
        .map(([seconds, value]) => [seconds, Number(value)] as const)
        .filter(([, value]) => Number.isFinite(value)),
    }));
  }

  async #query(query: string): Promise<{ metric: Record<string, string> }[]> {
    const path = `/api/v1/query?${new URLSearchParams({ query }).toString()}`;
    return (await this.#get<{ result: { metric: Record<string, string> }[] }>(path)).result;
  }

  async #get<T>(path: string): Promise<T> {
    const response = await fetch(`${this.#url}${path}`);
    if (!response.ok) throw new Error(`Prometheus: ${await response.text()}`);
    return ((await response.json()) as ApiResponse<T>).data;
  }
}

/** The alert rules with `for: 0s`: a run is too short for the time for which a condition must hold. */
function promptRules(): object {
  const groups = ruleGroups().groups.map(({ name, rules }) => ({
    name,
    rules: rules.map((rule) => ({ ...rule, ...('for' in rule ? { for: '0s' } : {}) })),
  }));
  return { groups };
}

/** The configuration of docker/prometheus/prometheus.yaml, with the replicas of this run. */
function configuration({ replicas }: Testbed, folder: string): object {
  const jobs = [...new Set(replicas.map(({ name }) => name.service))];
  return {
    global: { scrape_interval: INTERVAL, scrape_timeout: INTERVAL, evaluation_interval: INTERVAL },
    rule_files: [join(folder, 'rules.yaml')],
    scrape_configs: jobs.map((service) => {
      const own = replicas.filter(({ name }) => name.service === service);
      const targets = own.map(({ metricsPort }) => `127.0.0.1:${metricsPort}`);
      return { job_name: `${service}-service`, static_configs: [{ targets }] };
    }),
  };
}
