/** What a workload is told by: what is typical, and what it means. */
export const INPUTS = {
  facilities: [1e4, 'that generate once a day, all at one instant'],
  users: [1e5, 'people who sign in'],
  schedules: [1e5, 'daily ones; each instance is completed, each schedule is made anew after a year'],
  settings: [1e5, 'stored values'],
  watchers: [20, 'processes that watch all settings for changes'],
  signIns: [1, 'of each user a day'],
  passwordShare: [0.5, 'of the sign-ins: by password (0–1)'],
  trustShare: [0.2, 'of the sign-ins: by a signed request (0–1); the rest by shared secret'],
  refreshes: [1, 'of each user a day'],
  exchanges: [1, 'of tokens by each user a day'],
  reads: [50, 'of settings by each user a day'],
  writes: [0.1, 'of settings by each user a day'],
  settingLists: [1, 'pages of a list of settings by each user a day'],
  scheduleLists: [1, 'pages of a list of schedules by each user a day'],
  instanceLists: [5, 'pages of a list of instances by each user a day'],
  days: [365, 'that instances and the history of settings are kept'],
  peak: [5, 'the busiest hour beside the average'],
} as const satisfies Readonly<Record<string, readonly [typical: number, help: string]>>;

export type Workload = Readonly<Record<keyof typeof INPUTS, number>>;

/** Requests, by their names in the OpenAPI documents. */
export const REQUESTS = {
  auth: [
    'signInWithPassword',
    'signInWithTrustSignature',
    'signInWithSharedSecret',
    'refreshToken',
    'exchangeBearerToken',
  ],
  settings: ['getSettingValue', 'putSetting', 'listSubsystemSettings', 'listChanges'],
  task: ['createSchedule', 'completeInstance', 'listSchedules', 'listInstances', 'fire', 'instance'],
} as const;

/** A request, or work that a request or a trigger leads to. */
export type Work = (typeof REQUESTS)[keyof typeof REQUESTS][number];

const DAY_SECONDS = 86_400;
/** All facilities generate at one instant; what fires within this time is on time. */
const ON_TIME_SECONDS = 5_400;
/** A schedule is made anew so many days after the last time. */
export const SCHEDULE_DAYS = 365;
/**
 * A client that waits is answered after so long, or when settings change, which the service looks for so
 * often.
 */
const [WAIT_SECONDS, LOOKS_PER_SECOND] = [20, 10];

/**
 * How often each work is done per second while the busiest hour and the fires of all facilities fall
 * together.
 */
export function ratesOf(workload: Workload): Readonly<Record<Work, number>> {
  const { facilities, users, schedules, signIns, passwordShare, trustShare, watchers, peak } = workload;
  const inPeak = (aDay: number): number => (aDay * peak) / DAY_SECONDS;
  const byUsers = (ofEach: number): number => inPeak(users * ofEach);
  const writes = byUsers(workload.writes);
  return {
    signInWithPassword: byUsers(signIns * passwordShare),
    signInWithTrustSignature: byUsers(signIns * trustShare),
    signInWithSharedSecret: byUsers(signIns * Math.max(0, 1 - passwordShare - trustShare)),
    refreshToken: byUsers(workload.refreshes),
    exchangeBearerToken: byUsers(workload.exchanges),
    getSettingValue: byUsers(workload.reads),
    putSetting: writes,
    listSubsystemSettings: byUsers(workload.settingLists),
    listChanges: watchers * Math.min(LOOKS_PER_SECOND, writes + 1 / WAIT_SECONDS),
    createSchedule: inPeak(schedules / SCHEDULE_DAYS),
    completeInstance: inPeak(schedules),
    listSchedules: byUsers(workload.scheduleLists),
    listInstances: byUsers(workload.instanceLists),
    fire: facilities / ON_TIME_SECONDS,
    instance: schedules / ON_TIME_SECONDS,
  };
}
