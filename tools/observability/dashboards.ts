/** A query of a panel; `legend` in Grafana's notation. */
interface Query {
  readonly expr: string;
  readonly legend: string;
}

export interface Panel {
  readonly title: string;
  /** Unit in Grafana's notation. */
  readonly unit: string;
  readonly queries: readonly Query[];
}

export interface Dashboard {
  readonly uid: string;
  readonly title: string;
  readonly panels: readonly Panel[];
}

function panel(title: string, unit: string, ...queries: [expr: string, legend: string][]): Panel {
  return { title, unit, queries: queries.map(([expr, legend]) => ({ expr, legend })) };
}

/** Excludes probes, which are not traffic. */
const TRAFFIC = 'route!~"/health/.*"';

/** Returns panels with the golden signals of the jobs that match `selector`, grouped by the label `by`. */
function goldenSignals(selector: string, by: string): Panel[] {
  const requests = `{${selector},${TRAFFIC}}`;
  const errors = `{${selector},${TRAFFIC},status=~"5.."}`;
  const legend = `{{${by}}}`;
  return [
    panel('Requests', 'reqps', [
      `sum by (${by}) (rate(http_request_duration_seconds_count${requests}[5m]))`,
      legend,
    ]),
    panel('Failing requests (5xx)', 'reqps', [
      `sum by (${by}, status) (rate(http_request_duration_seconds_count${errors}[5m]))`,
      `${legend} {{status}}`,
    ]),
    panel(
      'Latency',
      's',
      ...[0.5, 0.99].map((quantile): [string, string] => [
        `histogram_quantile(${String(quantile)}, sum by (${by}, le) (rate(http_request_duration_seconds_bucket${requests}[5m])))`,
        `${legend} p${String(quantile * 100)}`,
      ]),
    ),
  ];
}

/** Returns the panels of every service: replicas, processor, memory, event loop, pool and revocation feed. */
function processPanels(job: string): Panel[] {
  const one = `{job="${job}"}`;
  return [
    panel('Replicas that answer', 'short', [`sum(up${one})`, 'up']),
    panel('Processor', 'percentunit', [`rate(process_cpu_seconds_total${one}[5m])`, '{{instance}}']),
    panel('Memory', 'bytes', [`process_resident_memory_bytes${one}`, '{{instance}}']),
    panel('Event loop lag, p99', 's', [`nodejs_eventloop_lag_p99_seconds${one}`, '{{instance}}']),
    panel(
      'Database connections',
      'short',
      [`sum by (database, state) (database_pool_connections${one})`, '{{database}} {{state}}'],
      [`sum by (database) (database_pool_connections_max${one})`, '{{database}} limit'],
      [`sum by (database) (database_pool_waiting${one})`, '{{database}} requests waiting'],
    ),
    panel(
      'Transaction collisions',
      'ops',
      [
        `sum by (database) (rate(database_transaction_retries_total${one}[5m]))`,
        '{{database}} repeated (40001)',
      ],
      [`sum by (database) (rate(database_transactions_exhausted_total${one}[5m]))`, '{{database}} given up'],
    ),
    panel('Age of the revocation feed', 's', [`revocation_feed_age_seconds${one}`, '{{instance}}']),
    panel('Refused access tokens', 'ops', [
      `sum by (reason) (rate(access_token_refusals_total${one}[5m]))`,
      '{{reason}}',
    ]),
  ];
}

const AUTH_PANELS: Panel[] = [
  panel('Tokens issued', 'ops', [
    'sum by (flow) (rate(auth_token_answers_total{reason="Successful"}[5m]))',
    '{{flow}}',
  ]),
  panel('Rejections', 'ops', [
    'sum by (flow, reason) (rate(auth_token_answers_total{reason!="Successful"}[5m]))',
    '{{flow}} {{reason}}',
  ]),
  panel(
    'Attacks, perhaps',
    'short',
    ['sum(increase(auth_refresh_reuses_total[15m]))', 'refresh tokens used again, 15 min'],
    ['sum(increase(auth_password_lockouts_total[15m]))', 'accounts locked, 15 min'],
    ['sum by (by) (increase(auth_token_rate_limited_total[15m]))', 'limited by {{by}}, 15 min'],
    [
      'sum by (reason) (increase(auth_sign_ins_refused_total[15m]))',
      'sign-ons not begun, {{reason}}, 15 min',
    ],
  ),
  panel('Password hashes', 'ops', ['sum(rate(auth_password_hashes_total[5m]))', 'argon2id']),
  panel('Revocations set', 'ops', ['sum by (domain) (rate(auth_revocations_total[5m]))', '{{domain}}']),
  panel(
    'Revocations known',
    'short',
    ['max by (job) (revocation_feed_entries)', '{{job}}'],
    ['max by (job) (revocation_feed_overflow_entries)', '{{job}} only roughly'],
  ),
  panel('Age of the signing key', 's', [
    'time() - max by (algorithm) (auth_signing_key_activated_timestamp_seconds)',
    '{{algorithm}}',
  ]),
  panel('Audit rows of refusals', 'ops', [
    'sum by (outcome) (rate(auth_refusal_audit_rows_total[5m]))',
    '{{outcome}}',
  ]),
];

const TASK_PANELS: Panel[] = [
  panel(
    'Message store',
    'short',
    ['max(task_outbox_waiting)', 'waiting'],
    ['max(task_outbox_parked)', 'parked'],
  ),
  panel('Oldest event', 's', ['max(task_outbox_oldest_age_seconds)', 'age']),
  panel(
    'Relay',
    'ops',
    ['sum(rate(task_outbox_sent_total[5m]))', 'sent'],
    ['sum(rate(task_outbox_refused_total[5m]))', 'refused'],
    ['sum(rate(task_outbox_parked_total[5m]))', 'parked'],
  ),
  panel(
    'Scheduler',
    'ops',
    ['sum(rate(task_scheduler_fired_total[5m]))', 'fired'],
    ['sum(rate(task_scheduler_misfired_total[5m]))', 'misfired'],
    ['sum(rate(task_scheduler_failures_total[5m]))', 'failed turns'],
  ),
  panel('Trigger lag', 's', ['max(task_trigger_lag_seconds)', 'longest due']),
  panel('Triggers that cannot be evaluated', 'short', ['max(task_triggers_failed)', 'failed']),
  panel('Instances generated', 'ops', ['sum(rate(task_instances_generated_total[5m]))', 'instances']),
  panel('Messages processed', 'ops', ['sum by (queue) (rate(messaging_consumed_total[5m]))', '{{queue}}']),
  panel(
    'Messages in trouble',
    'ops',
    ['sum by (queue) (rate(messaging_retried_total[5m]))', '{{queue}} repeated'],
    ['sum by (queue, reason) (rate(messaging_errored_total[5m]))', '{{queue}} {{reason}}'],
    ['sum by (queue) (rate(messaging_duplicates_total[5m]))', '{{queue}} duplicates'],
    ['sum by (queue) (rate(messaging_expired_total[5m]))', '{{queue}} expired'],
    ['sum by (queue) (rate(messaging_put_off_total[5m]))', '{{queue}} put off'],
  ),
  panel('Changes refused for want of a turn', 'ops', [
    'sum by (bound) (rate(task_change_slot_refusals_total[5m]))',
    '{{bound}}',
  ]),
  panel('Deliveries waiting for a connection', 'short', [
    'max by (instance) (messaging_deliveries_waiting)',
    '{{instance}}',
  ]),
  panel(
    'Messages published',
    'ops',
    ['sum by (message) (rate(messaging_published_total[5m]))', '{{message}}'],
    ['sum by (message) (rate(messaging_returned_total[5m]))', '{{message}} returned'],
  ),
];

const ALERTS = panel('Alerts that fire', 'short', [
  'sum by (alertname, severity) (ALERTS{alertstate="firing"})',
  '{{severity}} {{alertname}}',
]);

const ANY = 'job=~"auth-service|settings-service|task-service"';

/** All dashboards: one for the platform, and one for each service. */
export const DASHBOARDS: readonly Dashboard[] = [
  {
    uid: 'platform',
    title: 'Platform',
    panels: [
      ALERTS,
      panel('Replicas that answer', 'short', [`sum by (job) (up{${ANY}})`, '{{job}}']),
      panel('Error ratio, 1 h (budget 0.1 %)', 'percentunit', ['job:http_error_ratio:rate1h', '{{job}}']),
      ...goldenSignals(ANY, 'job'),
      panel('Event loop lag, p99', 's', [
        `max by (job) (nodejs_eventloop_lag_p99_seconds{${ANY}})`,
        '{{job}}',
      ]),
      panel('Requests waiting for the database', 'short', [
        'sum by (job, database) (database_pool_waiting)',
        '{{job}} {{database}}',
      ]),
      panel('Age of the revocation feed', 's', ['max by (job) (revocation_feed_age_seconds)', '{{job}}']),
      panel(
        'Oldest event and trigger lag',
        's',
        ['max(task_outbox_oldest_age_seconds)', 'oldest event'],
        ['max(task_trigger_lag_seconds)', 'trigger lag'],
      ),
    ],
  },
  ...(
    [
      ['auth-service', AUTH_PANELS],
      ['settings-service', []],
      ['task-service', TASK_PANELS],
    ] as const
  ).map(([job, panels]) => ({
    uid: job,
    title: job,
    panels: [...goldenSignals(`job="${job}"`, 'route'), ...panels, ...processPanels(job)],
  })),
];
