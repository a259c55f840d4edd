import type { DataSource } from 'typeorm';
import { LANE_COUNT } from './lanes';

// One index probe per lane, however long the backlog is.
const SELECT = `
  SELECT number AS lane FROM generate_series(0, $1 - 1) AS number
  WHERE EXISTS (SELECT 1 FROM task.outbox AS event
    WHERE event.lane = number AND event.parked_at IS NULL AND event.next_attempt_at <= now())`;

/** Lanes with an event to publish now: left by a replica that ended before it could, or due for another attempt. */
export async function waitingLanes(dataSource: DataSource): Promise<number[]> {
  const rows: { lane: number }[] = await dataSource.query(SELECT, [LANE_COUNT]);
  return rows.map(({ lane }) => lane);
}
