import type { ServiceName } from '#platform/programs.ts';
import type { TestPlatform } from '#platform/test-platform.ts';
import { SUBSYSTEM } from '../load/load.ts';
import { COPIES_QUEUE, readPublishedMessages } from '../published-messages.ts';
import type { StoredWrite } from './messages.ts';
import type { Fire } from './scheduler.ts';
import type { StoredFamily, StoredToken } from './sessions.ts';

/** What the run left in databases, queues and ledgers. */
export type Facts = Awaited<ReturnType<typeof gatherFacts>>;

/** A schedule with the numbers of its instances that were not released, of their different due times, and of those that are still to come. */
export interface StoredSchedule {
  readonly scheduleId: string;
  readonly key: string;
  readonly name: string;
  readonly status: string;
  readonly instances: number;
  readonly due: number;
  readonly coming: number;
}

/** Has the task database record every application of a business-unit change from now on, whatever the service remembers. A change that writes
 *  several rows, or both tables, is one application. */
export async function watchApplications(
  platform: TestPlatform,
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

/** A queue, its type and how many messages are in it; all queues but those of the copies. */
export async function readQueues(
  platform: TestPlatform,
): Promise<{ name: string; type: string; messages: number }[]> {
  const found: { name: string; type: string; messages: number }[] = [];
  for (const bus of ['main', 'scheduling'] as const) {
    for (const { name, type, messages = 0 } of await platform.bus(bus).queueTotals())
      if (name !== COPIES_QUEUE) found.push({ name: `${bus}/${name}`, type, messages });
  }
  return found;
}

/** The number of rows in a table of the task service. @param condition SQL after the table's name */
export async function countRows(platform: TestPlatform, table: string, condition = ''): Promise<number> {
  const sql = `SELECT count(*)::int AS rows FROM task.${table} ${condition}`;
  const [row] = await platform.query<{ rows: number }>('task', sql);
  return row?.rows ?? 0;
}

/** What an audit compares, by the service that keeps it; `id` is what the caller knows. */
const QUERIES = {
  /** Writes of settings in the order of the history. */
  history: `SELECT setting_key AS "group", value_text::json #>> '{}' AS id FROM settings.setting_history
    WHERE subsystem_key = '${SUBSYSTEM}' ORDER BY history_id`,
  currentSettings: `SELECT setting_key AS "group", value_text::json #>> '{}' AS id FROM settings.setting
    WHERE subsystem_key = '${SUBSYSTEM}'`,
  tokens: 'SELECT jti, family_id AS "familyId", successor_jti AS "successorJti" FROM auth.refresh_token',
  families: `SELECT family_id AS "familyId",
      CASE WHEN revoked_at IS NOT NULL THEN coalesce(revoked_because, 'unknown') END AS "revokedBecause"
    FROM auth.refresh_family`,
  revocations: `SELECT identifier AS id FROM auth.revocation WHERE domain = 'jti'`,
  schedules: `SELECT s.schedule_id AS "scheduleId", coalesce(idempotency_key, '') AS key,
      s.name, s.status, count(task_instance_id)::int AS instances, count(DISTINCT due_at)::int AS due,
      count(*) FILTER (WHERE i.status = 'Pending' AND due_at > now())::int AS coming
    FROM task.schedules AS s LEFT JOIN task.instances AS i
      ON i.schedule_id = s.schedule_id AND coalesce(cancellation_cause, 'Person') = 'Person'
    GROUP BY s.schedule_id`,
  completed: `SELECT task_instance_id AS id, facility_id::text AS "group" FROM task.instances WHERE status = 'Completed'`,
  fires: `SELECT facility_id::int AS "facilityId", message_id AS "messageId",
      (extract(epoch FROM scheduled_at) * 1000)::float8 AS "scheduledAtMs" FROM task.fires`,
  triggers: `SELECT facility_id::int AS "facilityId", (extract(epoch FROM next_fire_at) * 1000)::float8 AS "nextFireAtMs"
    FROM task.triggers`,
  inbox: 'SELECT queue, message_id AS "messageId" FROM task.inbox',
  applications: 'SELECT event_id AS id FROM chaos.application',
} as const;

/** Reads everything; nothing may be under way any more. */
export async function gatherFacts(platform: TestPlatform) {
  const read = <Row extends object>(service: ServiceName, query: keyof typeof QUERIES): Promise<Row[]> =>
    platform.query<Row>(service, QUERIES[query]);
  const current = await read<StoredWrite>('settings', 'currentSettings');
  const triggers = await read<{ facilityId: number; nextFireAtMs: number }>('task', 'triggers');
  const scheduling = `${platform.url('scheduling')}/events`;
  const completions = `${platform.url('completions')}/completions`;
  return {
    history: await read<StoredWrite>('settings', 'history'),
    currentSettings: new Map(current.map(({ group, id }) => [group, id])),
    tokens: await read<StoredToken>('auth', 'tokens'),
    families: await read<StoredFamily>('auth', 'families'),
    revokedJtis: idsOf(await read('auth', 'revocations')),
    schedules: await read<StoredSchedule>('task', 'schedules'),
    completed: await read<StoredWrite>('task', 'completed'),
    fires: await read<Fire>('task', 'fires'),
    nextFireAtMs: new Map(triggers.map(({ facilityId, nextFireAtMs }) => [facilityId, nextFireAtMs])),
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

/** Everything that a neighbour has received. */
async function readLedger<T>(url: string, member: string): Promise<Entry<T>[]> {
  const found: Entry<T>[] = [];
  for (;;) {
    const response = await fetch(`${url}?limit=1000&after=${found.at(-1)?.sequence ?? 0}`);
    const page = ((await response.json()) as Record<string, Entry<T>[]>)[member] ?? [];
    if (page.length === 0) return found;
    found.push(...page);
  }
}
