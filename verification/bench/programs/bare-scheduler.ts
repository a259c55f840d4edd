/**
 * A minimal clustered scheduler: `pg`, prepared statements, one connection. Fires the due triggers in the
 * database of DATABASE_URL, ten per transaction, with a fire row and an outbox row each. It evaluates no cron
 * expression.
 */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { serveMeasurements } from './serve-measurements';

const BATCH = 10;
const MESSAGE_BYTES = Number(process.env['MESSAGE_BYTES']);
const MESSAGE = JSON.stringify({ filler: 'x'.repeat(MESSAGE_BYTES - JSON.stringify({ filler: '' }).length) });
const HEADERS = JSON.stringify({ traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' });
const MESSAGE_TYPE = 'ITaskInstanceGenerationRequested';

const ACQUIRE = `
  SELECT facility_id, schedule, time_zone, next_fire_at FROM task.triggers
  WHERE state = 'WAITING' AND next_fire_at <= now()
  ORDER BY next_fire_at, facility_id LIMIT ${BATCH} FOR UPDATE SKIP LOCKED`;
const RECORD = `
  WITH fire AS (
    SELECT * FROM unnest($1::bigint[], $2::timestamptz[], $3::uuid[], $4::smallint[])
      AS fire (facility_id, scheduled_at, message_id, partition)
  ), moved AS (
    UPDATE task.triggers AS trigger
    SET next_fire_at = fire.scheduled_at + interval '1 day', previous_fire_at = fire.scheduled_at
    FROM fire WHERE trigger.facility_id = fire.facility_id
  ), recorded AS (
    INSERT INTO task.fires (facility_id, scheduled_at, misfired, missed_count, message_id)
    SELECT facility_id, scheduled_at, false, 0, message_id FROM fire
  )
  INSERT INTO task.outbox (partition, facility_id, message_id, message_type, sent_at, trace_headers, message)
  SELECT partition, facility_id, message_id, '${MESSAGE_TYPE}', now(), $5, $6 FROM fire`;

interface Due {
  facility_id: string;
  next_fire_at: Date;
}

const client = new pg.Client({ connectionString: process.env['DATABASE_URL'] });

async function fireBatch(): Promise<number> {
  await client.query('BEGIN');
  const { rows } = await client.query<Due>({ name: 'acquire', text: ACQUIRE });
  if (rows.length > 0) {
    const values = [
      rows.map((due) => due.facility_id),
      rows.map((due) => due.next_fire_at),
      rows.map(() => randomUUID()),
      rows.map((due) => Number(due.facility_id) % 16),
      HEADERS,
      MESSAGE,
    ];
    await client.query({ name: 'record', text: RECORD, values });
  }
  await client.query('COMMIT');
  return rows.length;
}

async function fireAll(): Promise<number> {
  for (let fired = 0; ;) {
    const batch = await fireBatch();
    fired += batch;
    if (batch < BATCH) return fired;
  }
}

void client.connect().then(() => serveMeasurements({ fire: fireAll }));
