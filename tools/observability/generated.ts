import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { DASHBOARDS, type Dashboard, type Panel } from './dashboards.ts';

export const FOLDER = join(import.meta.dirname, '../../observability');

/** A rule of observability/alerts.yaml. */
export interface Rule {
  readonly alert?: string;
  readonly record?: string;
  readonly expr: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Reads the rule groups of observability/alerts.yaml. */
export function ruleGroups(): { groups: { name: string; rules: Rule[] }[] } {
  return parse(readFileSync(join(FOLDER, 'alerts.yaml'), 'utf8')) as ReturnType<typeof ruleGroups>;
}

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
  // Lines are not folded, because YAML parsers disagree on the line breaks of a folded text with indented
  // lines.
  files.set('prometheus-rule.yaml', note + stringify(rule, { lineWidth: 0 }));
  return files;
}

const COLUMNS = 3;
const PANEL = { w: 8, h: 8 } as const;
/** Data source that the dashboard's variable selects, e.g. the one that docker/grafana provisions. */
const DATA_SOURCE = { type: 'prometheus', uid: '${datasource}' } as const;

function grafanaDashboard({ uid, title, panels }: Dashboard): object {
  return {
    uid,
    title,
    tags: ['property-platform'],
    schemaVersion: 39,
    editable: false,
    refresh: '30s',
    time: { from: 'now-3h', to: 'now' },
    templating: {
      list: [{ name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus' }],
    },
    panels: panels.map(grafanaPanel),
  };
}

function grafanaPanel({ title, unit, queries }: Panel, index: number): object {
  return {
    id: index + 1,
    type: 'timeseries',
    title,
    datasource: DATA_SOURCE,
    gridPos: { ...PANEL, x: (index % COLUMNS) * PANEL.w, y: Math.floor(index / COLUMNS) * PANEL.h },
    fieldConfig: {
      defaults: { unit, min: 0, custom: { fillOpacity: 10, showPoints: 'never' } },
      overrides: [],
    },
    options: {
      legend: { displayMode: 'list', placement: 'bottom' },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
    targets: queries.map(({ expr, legend }, query) => ({
      refId: String.fromCharCode('A'.charCodeAt(0) + query),
      datasource: DATA_SOURCE,
      expr,
      legendFormat: legend,
    })),
  };
}
