/** The inputs of a workload: typical value and help text. */
export const INPUTS = {
  facilities: [1e4, 'facilities that generate once a day, all at the same instant'],
  users: [1e5, 'people who sign in'],
  schedules: [1e5, 'daily schedules; each instance is completed, each schedule is recreated after a year'],
  settings: [1e5, 'stored settings'],
  watchers: [20, 'processes that watch all settings for changes'],
  signIns: [1, 'sign-ins per user and day'],
  passwordShare: [0.5, 'share of sign-ins by password (0–1)'],
  trustShare: [0.2, 'share of sign-ins by a signed request (0–1); the rest use a shared secret'],
  refreshes: [1, 'token refreshes per user and day'],
  exchanges: [1, 'token exchanges per user and day'],
  reads: [50, 'reads of settings per user and day'],
  writes: [0.1, 'writes of settings per user and day'],
  settingLists: [1, 'pages of a list of settings per user and day'],
  scheduleLists: [1, 'pages of a list of schedules per user and day'],
  instanceLists: [5, 'pages of a list of instances per user and day'],
  days: [365, 'days for which instances and the history of settings are kept'],
  peak: [5, 'rate of the busiest hour divided by the average rate'],
} as const satisfies Readonly<Record<string, readonly [typical: number, help: string]>>;

export type Workload = Readonly<Record<keyof typeof INPUTS, number>>;

/** Requests by their operation ids in the OpenAPI documents, and work that follows from them. */
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

/** A request, or work that a request or a trigger causes. */
export type Work = (typeof REQUESTS)[keyof typeof REQUESTS][number];

const DAY_SECONDS = 86_400;
/**
 * Maximum delay of a fire that still counts as on time, in seconds. All facilities are due at the same
 * instant.
 */
const ON_TIME_SECONDS = 5_400;
/** Each schedule is recreated after this many days. */
export const SCHEDULE_DAYS = 365;
/**
 * A long poll ends after 20 s, or when settings change. The service polls for changes 10 times per second.
 */
const [WAIT_SECONDS, POLLS_PER_SECOND] = [20, 10];

/** Rates of all work per second, if the busiest hour coincides with the fires of all facilities. */
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
    listChanges: watchers * Math.min(POLLS_PER_SECOND, writes + 1 / WAIT_SECONDS),
    createSchedule: inPeak(schedules / SCHEDULE_DAYS),
    completeInstance: inPeak(schedules),
    listSchedules: byUsers(workload.scheduleLists),
    listInstances: byUsers(workload.instanceLists),
    fire: facilities / ON_TIME_SECONDS,
    instance: schedules / ON_TIME_SECONDS,
  };
}
