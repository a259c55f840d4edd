import type { Dashboard, Panel } from './dashboards.ts';

const COLUMNS = 3;
const PANEL = { w: 8, h: 8 } as const;
/** The data source that docker/grafana provisions; elsewhere the variable chooses. */
const DATA_SOURCE = { type: 'prometheus', uid: '${datasource}' } as const;

/** A dashboard as Grafana's JSON, three panels in a row. */
export function grafanaDashboard({ uid, title, panels }: Dashboard): object {
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
