import type { EntityManager } from 'typeorm';

/** Where an event is in the store. */
export interface StoredPosition {
  readonly lane: number;
  readonly sequence: string;
}

/** An event that the broker refused. */
export interface RefusedMessage extends StoredPosition {
  /** Wait before the next attempt; null parks the event. */
  readonly delayMs: number | null;
  readonly error: string;
}

// Sequences are unique beyond their lanes. By index whatever the statistics say: joined with its positions, a table that was small when
// it was analysed is read as a whole.
const DELETE_SENT = `DELETE FROM task.outbox WHERE lane = ANY ($1::smallint[]) AND sequence = ANY ($2::bigint[])`;

const MARK_REFUSED = `
  UPDATE task.outbox AS event
  SET attempts = attempts + 1, last_error = refused.error,
    next_attempt_at = clock_timestamp() + coalesce(refused.delay_ms, 0) * interval '1 millisecond',
    parked_at = CASE WHEN refused.delay_ms IS NULL THEN clock_timestamp() END
  FROM unnest($1::smallint[], $2::bigint[], $3::float8[], $4::text[]) AS refused (lane, sequence, delay_ms, error)
  WHERE event.lane = refused.lane AND event.sequence = refused.sequence`;

/** Removes what the broker confirmed and notes what it refused. */
export async function settleBatch(
  manager: EntityManager,
  sent: readonly StoredPosition[],
  refused: readonly RefusedMessage[],
): Promise<void> {
  if (sent.length > 0) {
    await manager.query(DELETE_SENT, [
      [...new Set(sent.map((each) => each.lane))],
      sent.map((each) => each.sequence),
    ]);
  }
  if (refused.length > 0) {
    await manager.query(MARK_REFUSED, [
      refused.map((each) => each.lane),
      refused.map((each) => each.sequence),
      refused.map((each) => each.delayMs),
      refused.map((each) => each.error.slice(0, LONGEST_ERROR)),
    ]);
  }
}

const LONGEST_ERROR = 1_000;
