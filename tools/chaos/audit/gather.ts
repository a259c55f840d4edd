import type { Cluster } from '../cluster/cluster.ts';
import { VHOSTS } from '../cluster/servers.ts';
import { readWitness, type PublishedMessage } from '../cluster/witness.ts';
import { SUBSYSTEM } from '../load/settings-writer.ts';
import type { StoredFire } from './fires.ts';
import type { StoredFamily, StoredToken } from './sessions.ts';
import type { StoredWrite } from './writes.ts';

/** A queue and what lies in it. */
export interface QueueContent {
  readonly name: string;
  readonly messages: number;
}

/** What the run left in databases, queues and ledgers. */
export interface Facts {
  readonly history: readonly StoredWrite[];
  readonly currentSettings: ReadonlyMap<string, string>;
  readonly tokens: readonly StoredToken[];
  readonly families: readonly StoredFamily[];
  readonly revokedJtis: readonly string[];
  readonly schedules: readonly {
    scheduleId: string;
    facilityId: number;
    key: string;
    instances: number;
    due: number;
  }[];
  readonly completed: readonly { taskInstanceId: string; facilityId: number }[];
  readonly fires: readonly StoredFire[];
  readonly nextFireAtMs: ReadonlyMap<number, number>;
  readonly inbox: readonly { queue: string; messageId: string }[];
  readonly applications: readonly string[];
  readonly outboxRows: number;
  readonly published: readonly PublishedMessage[];
  readonly scheduleCreatedLedger: readonly { id: string; scheduleId: string }[];
  readonly completionLedger: readonly { id: string; taskInstanceId: string; facilityId: number }[];
  readonly queues: readonly QueueContent[];
}

/** Takes down every application of a business-unit change, whatever the service itself remembers of it. */
const WATCH_APPLICATIONS = [
  'CREATE SCHEMA chaos',
  'CREATE TABLE chaos.application (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, event_id text NOT NULL)',
  `CREATE FUNCTION chaos.note_application() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
     $$ BEGIN INSERT INTO chaos.application (event_id) VALUES (NEW.event_id); RETURN NULL; END $$`,
  `CREATE TRIGGER note_application AFTER INSERT OR UPDATE ON task.business_unit_changes
     FOR EACH ROW EXECUTE FUNCTION chaos.note_application()`,
] as const;

/** Prepares the database for the audit, before the load begins. */
export async function watchApplications({ database }: Cluster): Promise<void> {
  await database.query('task', ...WATCH_APPLICATIONS);
}

/** Messages in all queues but the witness's. */
export async function readQueues({ broker }: Cluster): Promise<QueueContent[]> {
  const found: QueueContent[] = [];
  for (const vhost of VHOSTS) {
    const queues = (await broker.manage('GET', `queues/${vhost}`)) as { name: string; messages?: number }[];
    for (const { name, messages = 0 } of queues)
      if (name !== 'chaos.witness') found.push({ name: `${vhost}/${name}`, messages });
  }
  return found;
}

export async function readOutbox({ database }: Cluster): Promise<number> {
  const [row] = await database.query<{ rows: number }>(
    'task',
    'SELECT count(*)::int AS rows FROM task.outbox',
  );
  return row?.rows ?? 0;
}

/** Reads everything; nothing may be under way any more. */
export async function gatherFacts(cluster: Cluster): Promise<Facts> {
  return {
    ...(await readSettings(cluster)),
    ...(await readTokens(cluster)),
    ...(await readTasks(cluster)),
    ...(await readScheduler(cluster)),
    ...(await readLedgers(cluster)),
    outboxRows: await readOutbox(cluster),
    queues: await readQueues(cluster),
    published: await readWitness(cluster.broker),
  };
}

async function readSettings({ database }: Cluster): Promise<Pick<Facts, 'history' | 'currentSettings'>> {
  const history = await database.query<{ group: string; id: string }>('settings', [
    `SELECT setting_key AS "group", value_text::json #>> '{}' AS id FROM settings.setting_history
     WHERE subsystem_key = $1 ORDER BY history_id`,
    [SUBSYSTEM],
  ]);
  const current = await database.query<{ group: string; id: string }>('settings', [
    `SELECT setting_key AS "group", value_text::json #>> '{}' AS id FROM settings.setting WHERE subsystem_key = $1`,
    [SUBSYSTEM],
  ]);
  return { history, currentSettings: new Map(current.map(({ group, id }) => [group, id])) };
}

async function readTokens({
  database,
}: Cluster): Promise<Pick<Facts, 'tokens' | 'families' | 'revokedJtis'>> {
  const revoked = await database.query<{ jti: string }>(
    'auth',
    `SELECT identifier AS jti FROM auth.revocation WHERE domain = 'jti'`,
  );
  return {
    tokens: await database.query<StoredToken & Record<string, unknown>>(
      'auth',
      'SELECT jti, family_id AS "familyId", successor_jti AS "successorJti" FROM auth.refresh_token',
    ),
    families: await database.query<StoredFamily & Record<string, unknown>>(
      'auth',
      `SELECT family_id AS "familyId", CASE WHEN revoked_at IS NOT NULL THEN coalesce(revoked_because, 'unknown') END
         AS "revokedBecause" FROM auth.refresh_family`,
    ),
    revokedJtis: revoked.map(({ jti }) => jti),
  };
}

async function readTasks({ database }: Cluster): Promise<Pick<Facts, 'schedules' | 'completed'>> {
  return {
    schedules: await database.query<Facts['schedules'][number]>(
      'task',
      `SELECT schedule_id AS "scheduleId", schedules.facility_id::int AS "facilityId", coalesce(idempotency_key, '') AS key,
         count(task_instance_id)::int AS instances, count(DISTINCT due_at)::int AS due
       FROM task.schedules LEFT JOIN task.instances USING (schedule_id) GROUP BY schedule_id`,
    ),
    completed: await database.query<Facts['completed'][number]>(
      'task',
      `SELECT task_instance_id AS "taskInstanceId", facility_id::int AS "facilityId" FROM task.instances
       WHERE status = 'Completed'`,
    ),
  };
}

async function readScheduler({
  database,
}: Cluster): Promise<Pick<Facts, 'fires' | 'nextFireAtMs' | 'inbox' | 'applications'>> {
  const fires = await database.query<{ facilityId: number; scheduledAt: Date; messageId: string }>(
    'task',
    `SELECT facility_id::int AS "facilityId", scheduled_at AS "scheduledAt", message_id AS "messageId" FROM task.trigger_fires`,
  );
  const triggers = await database.query<{ facilityId: number; nextFireAt: Date }>(
    'task',
    'SELECT facility_id::int AS "facilityId", next_fire_at AS "nextFireAt" FROM task.triggers',
  );
  const applications = await database.query<{ eventId: string }>(
    'task',
    'SELECT event_id AS "eventId" FROM chaos.application ORDER BY number',
  );
  return {
    fires: fires.map((fire) => ({ ...fire, scheduledAtMs: fire.scheduledAt.getTime() })),
    nextFireAtMs: new Map(triggers.map(({ facilityId, nextFireAt }) => [facilityId, nextFireAt.getTime()])),
    inbox: await database.query<Facts['inbox'][number]>(
      'task',
      'SELECT queue, message_id AS "messageId" FROM task.inbox',
    ),
    applications: applications.map(({ eventId }) => eventId),
  };
}

interface Entry<T> {
  readonly sequence: number;
  readonly id: string;
  readonly record: T;
}

async function readLedgers(
  cluster: Cluster,
): Promise<Pick<Facts, 'scheduleCreatedLedger' | 'completionLedger'>> {
  const passedOn = await readLedger<{ scheduleId: string }>(
    `${cluster.url('scheduling')}/events`,
    'scheduleCreated',
  );
  const received = await readLedger<{ taskInstanceId: string; facilityId: number }>(
    `${cluster.url('completions')}/completions`,
    'completions',
  );
  return {
    scheduleCreatedLedger: passedOn.map(({ id, record }) => ({ id, scheduleId: record.scheduleId })),
    completionLedger: received.map(({ id, record }) => ({ id, ...record })),
  };
}

async function readLedger<T>(url: string, member: string): Promise<Entry<T>[]> {
  const found: Entry<T>[] = [];
  for (;;) {
    const answer = await fetch(`${url}?limit=1000&after=${found.at(-1)?.sequence ?? 0}`);
    const page = ((await answer.json()) as Record<string, Entry<T>[]>)[member] ?? [];
    if (page.length === 0) return found;
    found.push(...page);
  }
}
