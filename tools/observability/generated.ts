import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { DASHBOARDS } from './dashboards.ts';
import { grafanaDashboard } from './grafana.ts';

export const FOLDER = join(import.meta.dirname, '../../observability');

/** A rule of observability/alerts.yaml. */
export interface Rule {
  readonly alert?: string;
  readonly record?: string;
  readonly expr: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** The rule groups, as Prometheus reads them. */
export function ruleGroups(): { groups: { name: string; rules: Rule[] }[] } {
  return parse(readFileSync(join(FOLDER, 'alerts.yaml'), 'utf8')) as ReturnType<typeof ruleGroups>;
}

/** The generated files by their path below observability/. */
export function generatedFiles(): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  for (const dashboard of DASHBOARDS)
    files.set(
      `dashboards/${dashboard.uid}.json`,
      `${JSON.stringify(grafanaDashboard(dashboard), null, 2)}\n`,
    );
  const rule = {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: 'property-platform', labels: { 'app.kubernetes.io/part-of': 'property-platform' } },
    spec: ruleGroups(),
  };
  const note = '# Written by tools/observability/generate.ts from alerts.yaml.\n';
  // Unfolded: readers of YAML do not agree on where a folded text with indented lines breaks.
  files.set('prometheus-rule.yaml', note + stringify(rule, { lineWidth: 0 }));
  return files;
}
