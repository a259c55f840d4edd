import type { EntityManager } from 'typeorm';

/** An event that the broker refused. */
export interface RefusedMessage {
  readonly sequence: string;
  /** Wait before the next attempt; null parks the event. */
  readonly delayMs: number | null;
  readonly error: string;
}

const DELETE_SENT = `DELETE FROM task.outbox WHERE lane = $1 AND sequence = ANY ($2::bigint[])`;

const MARK_REFUSED = `
  UPDATE task.outbox AS event
  SET attempts = attempts + 1, last_error = refused.error,
    next_attempt_at = clock_timestamp() + coalesce(refused.delay_ms, 0) * interval '1 millisecond',
    parked_at = CASE WHEN refused.delay_ms IS NULL THEN clock_timestamp() END
  FROM unnest($2::bigint[], $3::float8[], $4::text[]) AS refused (sequence, delay_ms, error)
  WHERE event.lane = $1 AND event.sequence = refused.sequence`;

/** Removes what the broker confirmed and notes what it refused. */
export async function settleLaneBatch(
  manager: EntityManager,
  lane: number,
  sent: readonly string[],
  refused: readonly RefusedMessage[],
): Promise<void> {
  if (sent.length > 0) await manager.query(DELETE_SENT, [lane, sent]);
  if (refused.length > 0) {
    await manager.query(MARK_REFUSED, [
      lane,
      refused.map((each) => each.sequence),
      refused.map((each) => each.delayMs),
      refused.map((each) => each.error.slice(0, LONGEST_ERROR)),
    ]);
  }
}

const LONGEST_ERROR = 1_000;
