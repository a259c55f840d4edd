import { callJson } from '#platform/callers.ts';
import type { ServiceName } from '#platform/programs.ts';
import { type PlatformUnderLoad, queryPersistently } from '#verification/traffic/platform.ts';
import { readPublishedMessages } from '#verification/traffic/published-messages.ts';
import { readQueues } from '#verification/traffic/queues.ts';
import { SUBSYSTEM } from '#verification/traffic/settings.ts';
import type { StoredCompletion } from './completions.ts';
import type { StoredSetting } from './feeds.ts';
import type { StoredWrite } from './messages.ts';
import type { Fire } from './fires.ts';
import type { StoredSchedule } from './instances.ts';
import type { StoredFamily, StoredToken } from './sessions.ts';

/** The contents of databases, queues and the neighbours' ledgers at the end of a run. */
export type Facts = Awaited<ReturnType<typeof gatherFacts>>;

/**
 * Installs a trigger that records each transaction in which a business-unit change takes effect,
 * independently of the service's own inbox. A change that writes several rows in one transaction counts once.
 */
export async function watchApplications(
  platform: PlatformUnderLoad,
  table: 'business_unit_facilities' | 'business_unit_changes',
): Promise<void> {
  await platform.query(
    'task',
    'CREATE SCHEMA IF NOT EXISTS chaos',
    `CREATE TABLE IF NOT EXISTS chaos.application (event_id text, transaction xid8 DEFAULT pg_current_xact_id(),
       PRIMARY KEY (event_id, transaction))`,
    `CREATE OR REPLACE FUNCTION chaos.note_application() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
       $$ BEGIN INSERT INTO chaos.application (event_id) VALUES (NEW.event_id) ON CONFLICT DO NOTHING; RETURN NULL; END $$`,
    `CREATE TRIGGER note_application AFTER INSERT OR UPDATE OF event_id ON task.${table}
       FOR EACH ROW EXECUTE FUNCTION chaos.note_application()`,
  );
}

/**
 * Counts rows in a table of the task service.
 * @param condition SQL after the table name, e.g. a WHERE clause
 */
export async function countRows(platform: PlatformUnderLoad, table: string, condition = ''): Promise<number> {
  const sql = `SELECT count(*)::int AS rows FROM task.${table} ${condition}`;
  const [row] = await queryPersistently<{ rows: number }>(platform, 'task', sql);
  return row?.rows ?? 0;
}

/** True while a transaction is writing to the task service's database. */
export async function isWriting(platform: PlatformUnderLoad): Promise<boolean> {
  const [row] = await queryPersistently<{ count: number }>(
    platform,
    'task',
    `SELECT count(*)::int FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_xid IS NOT NULL`,
  );
  return row?.count !== 0;
}

/** The queries behind the facts. `id` is the identifier that the caller knows. */
const QUERIES = {
  /** Writes of settings, in the order of the history. */
  history: `SELECT setting_key AS "group", value_text::json #>> '{}' AS id, '"' || revision || '"' AS etag
    FROM settings.setting_history
    WHERE subsystem_key = '${SUBSYSTEM}' ORDER BY history_id`,
  currentSettings: `SELECT setting_key AS "group", value_text::json #>> '{}' AS id FROM settings.setting
    WHERE subsystem_key = '${SUBSYSTEM}'`,
  tokens: 'SELECT jti, family_id AS "sessionId", successor_jti AS "successorJti" FROM auth.refresh_token',
  families: `SELECT family_id AS "sessionId",
      CASE WHEN revoked_at IS NOT NULL THEN coalesce(revoked_because, 'unknown') END AS "revokedBecause"
    FROM auth.refresh_family`,
  revocations: `SELECT identifier AS id FROM auth.revocation WHERE domain = 'jti'`,
  schedules: `SELECT s.schedule_id AS "scheduleId", coalesce(idempotency_key, '') AS key,
      s.name, s.status,
      coalesce(array_agg((extract(epoch FROM due_at) * 1000)::float8) FILTER (WHERE i.status = 'Pending'), '{}') AS pending,
      coalesce(array_agg((extract(epoch FROM due_at) * 1000)::float8) FILTER (WHERE i.status <> 'Pending'), '{}') AS settled,
      count(*) FILTER (WHERE i.status = 'Pending' AND due_at > now())::int AS "futureCount"
    FROM task.schedules AS s LEFT JOIN task.instances AS i
      ON i.schedule_id = s.schedule_id AND coalesce(cancellation_cause, 'Person') = 'Person'
    GROUP BY s.schedule_id`,
  completed: `SELECT task_instance_id AS id, facility_id::text AS "group",
      (extract(epoch FROM completed_at) * 1000)::float8 AS "completedAtMs", (extract(epoch FROM due_at) * 1000)::float8 AS "dueAtMs"
    FROM ONLY task.instances WHERE status = 'Completed'`,
  fires: `SELECT facility_id::int AS "facilityId", message_id AS "messageId",
      (extract(epoch FROM scheduled_at) * 1000)::float8 AS "scheduledAtMs",
      (extract(epoch FROM fired_at) * 1000)::float8 AS "firedAtMs"
    FROM task.fires`,
  triggers: `SELECT facility_id::int AS "facilityId" FROM task.triggers`,
  inbox: 'SELECT queue, message_id AS "messageId" FROM task.inbox',
  applications: 'SELECT event_id AS id FROM chaos.application',
} as const;

/** Reads all facts. Call it after the drain: nothing may still be in progress. */
export async function gatherFacts(platform: PlatformUnderLoad) {
  const read = <Row extends object>(service: ServiceName, query: keyof typeof QUERIES): Promise<Row[]> =>
    queryPersistently<Row>(platform, service, QUERIES[query]);
  const current = await read<StoredWrite>('settings', 'currentSettings');
  const triggers = await read<{ facilityId: number }>('task', 'triggers');
  const scheduling = `${platform.url('scheduling')}/events`;
  const completions = `${platform.url('completions')}/completions`;
  return {
    history: await read<StoredSetting>('settings', 'history'),
    currentSettings: new Map(current.map(({ group, id }) => [group, id])),
    tokens: await read<StoredToken>('auth', 'tokens'),
    families: await read<StoredFamily>('auth', 'families'),
    revokedJtis: idsOf(await read('auth', 'revocations')),
    schedules: await read<StoredSchedule>('task', 'schedules'),
    completed: await read<StoredCompletion>('task', 'completed'),
    fires: await read<Fire>('task', 'fires'),
    /** Facilities that have a trigger. */
    triggered: new Set(triggers.map(({ facilityId }) => facilityId)),
    inbox: await read<{ queue: string; messageId: string }>('task', 'inbox'),
    applications: idsOf(await read('task', 'applications')),
    scheduleCreatedLedger: idsOf(await readLedger(scheduling, 'scheduleCreated')),
    completionLedger: await readLedger<{ taskInstanceId: string; facilityId: number }>(
      completions,
      'completions',
    ),
    outboxRows: await countRows(platform, 'outbox'),
    queues: await readQueues(platform),
    published: await readPublishedMessages(platform),
  };
}

function idsOf(rows: readonly { readonly id: string }[]): string[] {
  return rows.map(({ id }) => id);
}

interface Entry<T> {
  readonly sequence: number;
  readonly id: string;
  readonly record: T;
}

/** Reads all pages of a neighbour's ledger of received messages. */
async function readLedger<T>(url: string, member: string): Promise<Entry<T>[]> {
  const found: Entry<T>[] = [];
  for (;;) {
    const after = found.at(-1)?.sequence ?? 0;
    const { [member]: page = [] } = await callJson<Record<string, Entry<T>[]>>(
      'GET',
      `${url}?limit=1000&after=${after}`,
    );
    if (page.length === 0) return found;
    found.push(...page);
  }
}
