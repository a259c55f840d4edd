import { backgroundCards, type Card, requestCard, rowBytes } from './cards.ts';

export interface Workload {
  readonly facilities: number;
  readonly users: number;
  readonly schedules: number;
  readonly settings: number;
  /** Of each user, a day. */
  readonly signIns: number;
  readonly refreshes: number;
  readonly reads: number;
  readonly writes: number;
  /** Days that instances and the history of settings are kept. */
  readonly days: number;
  /** How many times the average the busiest hour has. */
  readonly peak: number;
}

/** What a workload needs while its busiest hour and the fires of all facilities fall together. */
export interface Need {
  /** Processors kept busy. */
  readonly cores: Readonly<Record<'auth' | 'settings' | 'task' | 'postgresql', number>>;
  readonly walMegabytesPerSecond: number;
  readonly messagesPerSecond: number;
  /** Rows of each table when it has its full age. */
  readonly rows: Readonly<Record<string, number>>;
  readonly gigabytes: number;
}

const DAY_SECONDS = 86_400;
/** All facilities generate at one instant; what fires within this time is on time. */
const ON_TIME_SECONDS = 5_400;
const HORIZON_DAYS = 30;
/** A schedule is made anew so many days after the last time. */
const SCHEDULE_DAYS = 365;
/** How long rows are kept: the services' defaults, a month of fires being dropped as a whole. */
const [TOKEN_DAYS, AUDIT_DAYS, FIRE_DAYS, INBOX_DAYS] = [366, 400, 60, 30];
const AUDIT_TEXT_BYTES = 160;
const VALUE_BYTES = 240;

/** Schedules are daily; each instance is completed, and each completion is an event. */
export function needOf(workload: Workload): Need {
  const { facilities, users, schedules, signIns, refreshes, reads, writes, peak } = workload;
  const inPeak = (aDay: number): number => (aDay * peak) / DAY_SECONDS;
  const background = backgroundCards();
  const fires = facilities / ON_TIME_SECONDS;
  const created = inPeak(schedules / SCHEDULE_DAYS);
  const events = fires + created + inPeak(schedules);
  const work = {
    auth: [
      of(inPeak(users * signIns), requestCard('signInWithSharedSecret')),
      of(inPeak(users * refreshes), requestCard('refreshToken')),
    ],
    settings: [
      of(inPeak(users * reads), requestCard('getSettingValue')),
      of(inPeak(users * writes), requestCard('putSetting')),
    ],
    task: [
      of(created, requestCard('createSchedule')),
      // A completion is a request that writes a row and an event; as a write of a setting does.
      of(inPeak(schedules), requestCard('putSetting')),
      of(fires, background.fire),
      of(events, background.event),
      of(schedules / ON_TIME_SECONDS, background.instance),
    ],
  };
  const all = [...work.auth, ...work.settings, ...work.task];
  const rows = rowsOf(workload);
  return {
    cores: {
      auth: sum(work.auth.map(({ service }) => service)) / 1e6,
      settings: sum(work.settings.map(({ service }) => service)) / 1e6,
      task: sum(work.task.map(({ service }) => service)) / 1e6,
      postgresql: sum(all.map(({ postgresql }) => postgresql)) / 1e6,
    },
    walMegabytesPerSecond: sum(all.map(({ walBytes }) => walBytes)) / 1e6,
    messagesPerSecond: events,
    rows,
    gigabytes: sum(Object.entries(rows).map(([table, count]) => count * bytesOf(table))) / 1e9,
  };
}

/** So many a second of what costs `card`. */
function of(rate: number, { service, postgresql, walBytes }: Card): Card {
  return { service: rate * service, postgresql: rate * postgresql, walBytes: rate * walBytes };
}

function rowsOf(workload: Workload): Record<string, number> {
  const { facilities, users, schedules, settings, signIns, refreshes, writes, days } = workload;
  return {
    'person_directory.person': users,
    'auth.refresh_family': users * signIns * TOKEN_DAYS,
    'auth.refresh_token': users * (signIns + refreshes) * TOKEN_DAYS,
    'auth.token_audit': users * (signIns + refreshes) * AUDIT_DAYS,
    'settings.setting': settings,
    'settings.setting_history': users * writes * days,
    'task.schedules': schedules,
    'task.instances': schedules * (days + HORIZON_DAYS),
    'task.triggers': facilities,
    'task.fires': facilities * FIRE_DAYS,
    'task.inbox': (facilities + schedules / SCHEDULE_DAYS) * INBOX_DAYS,
  };
}

function bytesOf(table: string): number {
  if (table === 'auth.token_audit') return rowBytes(table) + AUDIT_TEXT_BYTES;
  return rowBytes(table) + (table.startsWith('settings.') ? VALUE_BYTES : 0);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

/** What one node of each kind bears. */
export interface Limits {
  readonly cores: number;
  readonly gigabytes: number;
  readonly walMegabytesPerSecond: number;
  readonly messagesPerSecond: number;
}

/** The limit of one PostgreSQL or broker that a need comes closest to, and how much of it is used. */
export function firstLimit(need: Need, limits: Limits): { readonly name: string; readonly used: number } {
  const used = {
    'PostgreSQL cores': need.cores.postgresql / limits.cores,
    'PostgreSQL disk': need.gigabytes / limits.gigabytes,
    'PostgreSQL log': need.walMegabytesPerSecond / limits.walMegabytesPerSecond,
    'broker messages': need.messagesPerSecond / limits.messagesPerSecond,
  };
  const [[name, share] = ['', 0]] = Object.entries(used).sort(([, left], [, right]) => right - left);
  return { name, used: share };
}

/** The workload that fills its largest table with so many rows, all quantities in the same proportion. */
export function scaledTo(rows: number, workload: Workload): Workload {
  const factor = rows / Math.max(...Object.values(needOf(workload).rows));
  const { facilities, users, schedules, settings } = workload;
  return {
    ...workload,
    ...{ facilities: facilities * factor, users: users * factor },
    ...{ schedules: schedules * factor, settings: settings * factor },
  };
}
