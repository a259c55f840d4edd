import type { DataSource } from 'typeorm';
import type { FacilityScope } from '../access/facility-scope';
import type { Trigger } from './trigger';
import { TRIGGER_COLUMNS } from './trigger-columns';

const SELECT = `
  SELECT ${TRIGGER_COLUMNS} FROM task.triggers
  WHERE ($1::bigint[] IS NULL OR facility_id = ANY ($1)) AND ($2::bigint IS NULL OR facility_id > $2)
  ORDER BY facility_id
  LIMIT $3`;

/** Triggers of the facilities in scope, by facility, after the given one. */
export async function listTriggers(
  dataSource: DataSource,
  { scope, after, limit }: { scope: FacilityScope; after: readonly unknown[]; limit: number },
): Promise<Trigger[]> {
  return dataSource.query<Trigger[]>(SELECT, [scope === 'all' ? null : scope, after[0] ?? null, limit]);
}
