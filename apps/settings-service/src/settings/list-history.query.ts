import type { DataSource } from 'typeorm';
import type { Operation } from './history-entry';
import type { SettingKey } from './setting-key';
import type { JsonText } from './setting-value';
import { MAX_PAGE_BYTES } from './list-settings.query';

/** One entry of a setting's audit history. */
export interface HistoryEntry {
  readonly id: string;
  readonly operation: Operation;
  /** The value written, or the one that was deleted. */
  readonly valueText: JsonText;
  readonly personId: string | null;
  readonly userId: string | null;
  readonly personName: string | null;
  readonly persona: number;
  readonly occurredAt: Date;
  readonly requestId: string;
}

/** One page, newest first; `nextBefore` is where the following one starts, null on the last. */
export interface HistoryPage {
  readonly entries: readonly HistoryEntry[];
  readonly nextBefore: string | null;
}

const LIST_HISTORY = `
  SELECT history_id, operation, value_text, person_id, user_id, person_name, persona, occurred_at, request_id, candidates
    FROM (SELECT *,
                 row_number() OVER list AS position,
                 count(*) OVER () AS candidates,
                 sum(octet_length(value_text)) OVER list - octet_length(value_text) AS bytes_before
            FROM (SELECT *
                    FROM settings.setting_history
                   WHERE subsystem_key = $1 AND setting_key = $2 AND ($3::bigint IS NULL OR history_id < $3)
                   ORDER BY history_id DESC
                   LIMIT $4 + 1) AS candidate
          WINDOW list AS (ORDER BY history_id DESC)) AS measured
   WHERE position <= $4 AND (position = 1 OR bytes_before + octet_length(value_text) <= $5)
   ORDER BY history_id DESC`;

interface Row {
  history_id: string;
  operation: Operation;
  value_text: JsonText;
  person_id: string | null;
  user_id: string | null;
  person_name: string | null;
  persona: number;
  occurred_at: Date;
  request_id: string;
  candidates: string;
}

/** Entries of one setting older than `before`, or the newest; also after the setting was deleted. */
export async function listHistory(
  dataSource: DataSource,
  key: SettingKey,
  pageSize: number,
  before: string | null,
): Promise<HistoryPage> {
  const parameters = [key.subsystem.key, key.setting.key, before, pageSize, MAX_PAGE_BYTES];
  const rows = await dataSource.query<Row[]>(LIST_HISTORY, parameters);
  const last = rows.at(-1);
  const hasMore = last !== undefined && Number(last.candidates) > rows.length;
  return { entries: rows.map(historyEntry), nextBefore: hasMore ? last.history_id : null };
}

function historyEntry(row: Row): HistoryEntry {
  return {
    id: row.history_id,
    operation: row.operation,
    valueText: row.value_text,
    personId: row.person_id,
    userId: row.user_id,
    personName: row.person_name,
    persona: row.persona,
    occurredAt: row.occurred_at,
    requestId: row.request_id,
  };
}
