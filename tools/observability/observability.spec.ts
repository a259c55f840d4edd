import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { testsThatNeed } from '@platform/testing';
import { parse, stringify } from 'yaml';
import { findPrometheus } from '#platform/prometheus.ts';
import { DASHBOARDS } from './dashboards.ts';
import { metricsOf, promtool } from './promtool.ts';
import { FOLDER, generatedFiles, ruleGroups } from './generated.ts';

const OPERATIONS = readFileSync(join(FOLDER, '../docs/operations.md'), 'utf8');
const rules = ruleGroups().groups.flatMap((group) => group.rules);
const alerts = [...new Set(rules.flatMap(({ alert }) => alert ?? []))];
const queries = DASHBOARDS.flatMap(({ panels }) => panels.flatMap((panel) => panel.queries));

describe('observability/', () => {
  it('is up to date with its generator (node tools/observability/generate.ts)', () => {
    for (const [path, text] of generatedFiles())
      expect({ path, text: readFileSync(join(FOLDER, path), 'utf8') }).toEqual({ path, text });
  });

  it.each(alerts)('explains the alert %s in docs/operations.md', (alert) => {
    const rule = rules.find((each) => each.alert === alert);
    expect(rule?.annotations?.runbook_url).toMatch(
      new RegExp(`docs/operations\\.md#${alert.toLowerCase()}$`),
    );
    expect(OPERATIONS).toMatch(new RegExp(`^#+ ${alert}$`, 'm'));
  });

  it.each(alerts)('tests %s once where it fires and once where it stays silent', (alert) => {
    const ruleTests = parse(readFileSync(join(FOLDER, 'alerts.test.yaml'), 'utf8')) as {
      tests: { name: string }[];
    };
    const names = ruleTests.tests.map(({ name }) => name).filter((name) => name.split(' ')[0] === alert);
    expect(names.some((name) => name.endsWith(' fires'))).toBe(true);
    expect(names.some((name) => name.endsWith(' stays silent'))).toBe(true);
  });

  it('describes every metric that an alert or a dashboard reads', () => {
    const read = new Set([...rules, ...queries].flatMap(({ expr }) => metricsOf(expr)));
    const described = [...read].map((name) => name.replace(/_(?:bucket|count|sum)$/, ''));
    expect(described.filter((name) => !OPERATIONS.includes(`\`${name}`))).toEqual([]);
  });
});

describe('metricsOf', () => {
  it('finds names, and neither functions nor labels nor recording rules', () => {
    expect(
      metricsOf(
        'histogram_quantile(0.99, sum by (job, le) (rate(a_bucket{route!~"/x.*"}[5m]))) > 14.4 * 0.001 and job:b:rate5m < max(c)',
      ),
    ).toEqual(['a_bucket', 'c']);
  });
});

const program = findPrometheus('promtool');
const { describe: describeWithPromtool } = testsThatNeed(
  'rules and queries checked by promtool',
  program === null ? 'no promtool (.ci/install promtool brings it)' : null,
);

describeWithPromtool('promtool', () => {
  const run = (...args: string[]): string => promtool(program as string, ...args);

  it('accepts the rules', () => {
    expect(run('check', 'rules', join(FOLDER, 'alerts.yaml'))).toContain('SUCCESS');
  });

  it('passes alerts.test.yaml: every alert fires and stays silent when it should', () => {
    expect(run('test', 'rules', join(FOLDER, 'alerts.test.yaml'))).toContain('SUCCESS');
  });

  it('can parse the query of every panel', () => {
    const folder = mkdtempSync(join(tmpdir(), 'queries-'));
    try {
      const records = queries.map(({ expr }, index) => ({ record: `query_${String(index)}`, expr }));
      writeFileSync(
        join(folder, 'queries.yaml'),
        stringify({ groups: [{ name: 'queries', rules: records }] }),
      );
      expect(run('check', 'rules', join(folder, 'queries.yaml'))).toContain(
        `${String(records.length)} rules found`,
      );
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('accepts the configuration of docker/prometheus', () => {
    const file = join(FOLDER, '../docker/prometheus/prometheus.yaml');
    expect(run('check', 'config', '--syntax-only', file)).toContain('SUCCESS');
  });
});
