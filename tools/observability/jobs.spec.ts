import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { renderAll } from '#manifests/renderings.ts';
import { DASHBOARDS } from './dashboards.ts';
import { jobsIn } from './promtool.ts';
import { ruleGroups } from './generated.ts';

const WORKSPACE = join(import.meta.dirname, '../..');
const rules = ruleGroups().groups.flatMap((group) => group.rules);
const queries = DASHBOARDS.flatMap(({ panels }) => panels.flatMap((panel) => panel.queries));
const queriedJobs = [...new Set([...rules, ...queries].flatMap(({ expr }) => jobsIn(expr)))].sort();

interface ServiceMonitor {
  jobLabel?: string;
  selector: { matchLabels: Record<string, string> };
  endpoints: Record<string, unknown>[];
}

/**
 * Returns the `job` labels that the Prometheus operator sets: the value of the Service's label `jobLabel`, or
 * else the Service's name.
 */
function jobsOfMonitors(objects: ReturnType<typeof renderAll>[number]['objects']): string[] {
  return objects
    .filter(({ kind }) => kind === 'ServiceMonitor')
    .flatMap((monitor) => {
      const { jobLabel, selector } = monitor.spec as ServiceMonitor;
      return objects
        .filter(({ kind, metadata }) => kind === 'Service' && hasAll(metadata.labels, selector.matchLabels))
        .map(({ metadata }) => metadata.labels?.[jobLabel ?? ''] ?? metadata.name);
    });
}

function hasAll(
  labels: Readonly<Record<string, string>> = {},
  wanted: Readonly<Record<string, string>>,
): boolean {
  return Object.entries(wanted).every(([name, value]) => labels[name] === value);
}

describe('the label `job`', () => {
  it('is queried in rules and dashboards for each service, and for nothing else', () => {
    expect(queriedJobs).toEqual(['auth-service', 'settings-service', 'task-service']);
    // A `job` label that a rule sets must be one of these.
    expect(
      rules.flatMap(({ labels }) => labels?.['job'] ?? []).filter((job) => !queriedJobs.includes(job)),
    ).toEqual([]);
  });

  it.each(
    renderAll(WORKSPACE).filter(({ objects }) => objects.some(({ kind }) => kind === 'PrometheusRule')),
  )('is set by the ServiceMonitors of $folder', ({ objects }) => {
    expect(jobsOfMonitors(objects).sort()).toEqual(queriedJobs);
    const monitors = objects.filter(({ kind }) => kind === 'ServiceMonitor');
    for (const { spec } of monitors)
      for (const endpoint of (spec as ServiceMonitor).endpoints)
        expect(endpoint).not.toHaveProperty('relabelings');
  });

  it('has its rules and dashboards in the production overlay', () => {
    const production = renderAll(WORKSPACE).find(({ folder }) => folder === 'k8s/overlays/production');
    expect(production?.objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual(
      expect.arrayContaining(['PrometheusRule property-platform', 'ConfigMap property-platform-dashboards']),
    );
  });

  it('is set by the Prometheus of docker compose', () => {
    const { scrape_configs: jobs } = parse(
      readFileSync(join(WORKSPACE, 'docker/prometheus/prometheus.yaml'), 'utf8'),
    ) as { scrape_configs: { job_name: string }[] };
    // No rule or dashboard queries the job of RabbitMQ's metrics.
    expect(jobs.map(({ job_name: name }) => name).sort()).toEqual([...queriedJobs, 'rabbitmq'].sort());
  });
});

describe('jobsIn', () => {
  it('finds the jobs of equality, regular-expression and negated matchers', () => {
    expect(jobsIn('absent(up{job="a"} == 1) or up{x="y", job=~"b|c"} + z{job!="d"} and by (job)')).toEqual([
      'a',
      'b',
      'c',
      'd',
    ]);
    expect(jobsIn('up{other_job="a"}')).toEqual([]);
  });
});
