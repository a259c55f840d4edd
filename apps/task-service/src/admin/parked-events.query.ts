import type { DataSource } from 'typeorm';
import type { Selection } from './command-line';
import type { ParkedEvent } from './parked-event';

const COLUMNS = `
  message_id AS "messageId", facility_id::float8 AS "facilityId", bus, exchange, attempts, last_error AS "lastError",
  created_at AS "createdAt", parked_at AS "parkedAt", body`;

// Whoever is not parked is the relay's business, whatever id an operator names.
const CHOSEN = `
  parked_at IS NOT NULL AND ($1::text[] IS NULL OR message_id::text = ANY ($1)) AND ($2::bigint IS NULL OR facility_id = $2)`;

const LIST = `SELECT ${COLUMNS} FROM task.outbox WHERE ${CHOSEN} ORDER BY parked_at, lane, sequence LIMIT $3`;

const REPLAY = `
  WITH chosen AS (
    UPDATE task.outbox SET parked_at = NULL, attempts = 0, next_attempt_at = now() WHERE ${CHOSEN} RETURNING *
  ) SELECT ${COLUMNS.replace('parked_at AS', 'now() AS')} FROM chosen ORDER BY lane, sequence`;

const DISCARD = `
  WITH chosen AS (DELETE FROM task.outbox WHERE ${CHOSEN} RETURNING *)
  SELECT ${COLUMNS} FROM chosen ORDER BY lane, sequence`;

type Choice = Pick<Selection, 'ids' | 'facilityId'>;

const parameters = ({ ids, facilityId }: Choice): unknown[] => [
  ids === null ? null : [...ids].map((id) => id.toLowerCase()),
  facilityId,
];

/** The chosen parked events, longest parked first. */
export function listParkedEvents(
  dataSource: DataSource,
  choice: Choice,
  limit: number,
): Promise<ParkedEvent[]> {
  return dataSource.query<ParkedEvent[]>(LIST, [...parameters(choice), limit]);
}

/** Hands the chosen events back to the relay, with all their attempts before them. */
export function replayParkedEvents(dataSource: DataSource, choice: Choice): Promise<ParkedEvent[]> {
  return dataSource.query<ParkedEvent[]>(REPLAY, parameters(choice));
}

/** Deletes the chosen events. */
export function discardParkedEvents(dataSource: DataSource, choice: Choice): Promise<ParkedEvent[]> {
  return dataSource.query<ParkedEvent[]>(DISCARD, parameters(choice));
}
