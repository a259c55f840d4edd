import { rowBytes } from './prices.ts';
import { SCHEDULE_DAYS, type Workload } from './workload.ts';

/** The number of rows of a table: `fixed` plus `aDay` times `days`. */
interface Rows {
  readonly fixed?: number;
  /** Rows added per day. */
  readonly aDay?: number;
  /** Retention of an added row. */
  readonly days?: number;
}

/** The contents of the databases when every table has reached its full retention. */
export interface Storage {
  readonly rows: Readonly<Record<string, number>>;
  readonly gigabytes: number;
  /** Growth per day, without the purges. */
  readonly gigabytesADay: number;
}

const HORIZON_DAYS = 30;
/** Retention: the services' defaults. Fires are kept for up to 60 days, because they are dropped by month. */
const [TOKEN_DAYS, AUDIT_DAYS, FIRE_DAYS, INBOX_DAYS] = [366, 400, 60, 30];
const AUDIT_TEXT_BYTES = 160;
const VALUE_BYTES = 240;

export function storageOf(workload: Workload): Storage {
  const tables = Object.entries(tablesOf(workload));
  const count = ({ fixed = 0, aDay = 0, days = 0 }: Rows): number => fixed + aDay * days;
  const bytes = (rows: (of: Rows) => number): number =>
    tables.reduce((sum, [table, of]) => sum + rows(of) * bytesOf(table), 0);
  return {
    rows: Object.fromEntries(tables.map(([table, of]) => [table, count(of)])),
    gigabytes: bytes(count) / 1e9,
    gigabytesADay: bytes(({ aDay = 0 }) => aDay) / 1e9,
  };
}

function tablesOf(workload: Workload): Record<string, Rows> {
  const { facilities, users, schedules, settings, signIns, refreshes, exchanges, writes, days } = workload;
  return {
    'person_directory.person': { fixed: users },
    'auth.refresh_family': { aDay: users * signIns, days: TOKEN_DAYS },
    'auth.refresh_token': { aDay: users * (signIns + refreshes), days: TOKEN_DAYS },
    'auth.token_audit': { aDay: users * (signIns + refreshes + exchanges), days: AUDIT_DAYS },
    'settings.setting': { fixed: settings },
    'settings.setting_history': { aDay: users * writes, days },
    'task.schedules': { fixed: schedules },
    'task.instances': { aDay: schedules, days: days + HORIZON_DAYS },
    'task.triggers': { fixed: facilities },
    'task.fires': { aDay: facilities, days: FIRE_DAYS },
    'task.inbox': { aDay: facilities + schedules / SCHEDULE_DAYS, days: INBOX_DAYS },
  };
}

function bytesOf(table: string): number {
  if (table === 'auth.token_audit') return rowBytes(table) + AUDIT_TEXT_BYTES;
  return rowBytes(table) + (table.startsWith('settings.') ? VALUE_BYTES : 0);
}
