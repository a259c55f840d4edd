import type { TestPlatform } from '#platform/test-platform.ts';
import { COPIES_QUEUE, readPublishedMessages, type PublishedMessage } from '../published-messages.ts';
import { SUBSYSTEM } from '../load/settings-writer.ts';
import type { StoredFire } from './scheduler.ts';
import type { StoredFamily, StoredToken } from './sessions.ts';
import type { StoredWrite } from './messages.ts';

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
export async function watchApplications(platform: TestPlatform): Promise<void> {
  await platform.query('task', ...WATCH_APPLICATIONS);
}

/** Messages in all queues but those of the copies. */
export async function readQueues(platform: TestPlatform): Promise<QueueContent[]> {
  const found: QueueContent[] = [];
  for (const bus of ['main', 'scheduling'] as const) {
    for (const { name, messages = 0 } of await platform.bus(bus).queueDeclarations())
      if (name !== COPIES_QUEUE) found.push({ name: `${bus}/${name}`, messages });
  }
  return found;
}

export async function readOutbox(platform: TestPlatform): Promise<number> {
  const [row] = await platform.query<{ rows: number }>(
    'task',
    'SELECT count(*)::int AS rows FROM task.outbox',
  );
  return row?.rows ?? 0;
}

/** Reads everything; nothing may be under way any more. */
export async function gatherFacts(platform: TestPlatform): Promise<Facts> {
  return {
    ...(await readSettings(platform)),
    ...(await readTokens(platform)),
    ...(await readTasks(platform)),
    ...(await readScheduler(platform)),
    ...(await readLedgers(platform)),
    outboxRows: await readOutbox(platform),
    queues: await readQueues(platform),
    published: await readPublishedMessages(platform),
  };
}

async function readSettings(platform: TestPlatform): Promise<Pick<Facts, 'history' | 'currentSettings'>> {
  const history = await platform.query<{ group: string; id: string }>('settings', [
    `SELECT setting_key AS "group", value_text::json #>> '{}' AS id FROM settings.setting_history
     WHERE subsystem_key = $1 ORDER BY history_id`,
    [SUBSYSTEM],
  ]);
  const current = await platform.query<{ group: string; id: string }>('settings', [
    `SELECT setting_key AS "group", value_text::json #>> '{}' AS id FROM settings.setting WHERE subsystem_key = $1`,
    [SUBSYSTEM],
  ]);
  return { history, currentSettings: new Map(current.map(({ group, id }) => [group, id])) };
}

async function readTokens(
  platform: TestPlatform,
): Promise<Pick<Facts, 'tokens' | 'families' | 'revokedJtis'>> {
  const revoked = await platform.query<{ jti: string }>(
    'auth',
    `SELECT identifier AS jti FROM auth.revocation WHERE domain = 'jti'`,
  );
  return {
    tokens: await platform.query<StoredToken>(
      'auth',
      'SELECT jti, family_id AS "familyId", successor_jti AS "successorJti" FROM auth.refresh_token',
    ),
    families: await platform.query<StoredFamily>(
      'auth',
      `SELECT family_id AS "familyId", CASE WHEN revoked_at IS NOT NULL THEN coalesce(revoked_because, 'unknown') END
         AS "revokedBecause" FROM auth.refresh_family`,
    ),
    revokedJtis: revoked.map(({ jti }) => jti),
  };
}

async function readTasks(platform: TestPlatform): Promise<Pick<Facts, 'schedules' | 'completed'>> {
  return {
    schedules: await platform.query<Facts['schedules'][number]>(
      'task',
      `SELECT schedule_id AS "scheduleId", schedules.facility_id::int AS "facilityId", coalesce(idempotency_key, '') AS key,
         count(task_instance_id)::int AS instances, count(DISTINCT due_at)::int AS due
       FROM task.schedules LEFT JOIN task.instances USING (schedule_id) GROUP BY schedule_id`,
    ),
    completed: await platform.query<Facts['completed'][number]>(
      'task',
      `SELECT task_instance_id AS "taskInstanceId", facility_id::int AS "facilityId" FROM task.instances
       WHERE status = 'Completed'`,
    ),
  };
}

async function readScheduler(
  platform: TestPlatform,
): Promise<Pick<Facts, 'fires' | 'nextFireAtMs' | 'inbox' | 'applications'>> {
  const fires = await platform.query<{ facilityId: number; scheduledAt: Date; messageId: string }>(
    'task',
    `SELECT facility_id::int AS "facilityId", scheduled_at AS "scheduledAt", message_id AS "messageId" FROM task.trigger_fires`,
  );
  const triggers = await platform.query<{ facilityId: number; nextFireAt: Date }>(
    'task',
    'SELECT facility_id::int AS "facilityId", next_fire_at AS "nextFireAt" FROM task.triggers',
  );
  const applications = await platform.query<{ eventId: string }>(
    'task',
    'SELECT event_id AS "eventId" FROM chaos.application ORDER BY number',
  );
  return {
    fires: fires.map((fire) => ({ ...fire, scheduledAtMs: fire.scheduledAt.getTime() })),
    nextFireAtMs: new Map(triggers.map(({ facilityId, nextFireAt }) => [facilityId, nextFireAt.getTime()])),
    inbox: await platform.query<Facts['inbox'][number]>(
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
  platform: TestPlatform,
): Promise<Pick<Facts, 'scheduleCreatedLedger' | 'completionLedger'>> {
  const passedOn = await readLedger<{ scheduleId: string }>(
    `${platform.url('scheduling')}/events`,
    'scheduleCreated',
  );
  const received = await readLedger<{ taskInstanceId: string; facilityId: number }>(
    `${platform.url('completions')}/completions`,
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
