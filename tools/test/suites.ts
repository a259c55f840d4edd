/**
 * Integration tests run in suites: files that load several test files, so that Nest, TypeORM and the other
 * packages are loaded once for all of them. Loading them takes about 2 s of processor time, as long as most
 * test files take themselves.
 */

/** The expected duration of a suite, in seconds: short enough to keep two workers busy until the end. */
const SUITE_SECONDS = 40;
const DEFAULT_SECONDS = 4;
/** Approximate durations of test files that take longer, at full size. They only balance the suites. */
const SECONDS: Readonly<Record<string, number>> = {
  'apps/auth-service/test/hostile-requests.integration-spec.ts': 30,
  'apps/auth-service/test/late-commits.integration-spec.ts': 42,
  'apps/auth-service/test/openid-max-age.integration-spec.ts': 9,
  'apps/auth-service/test/openid-return.integration-spec.ts': 9,
  'apps/auth-service/test/outage.integration-spec.ts': 12,
  'apps/auth-service/test/revocation-bounds.integration-spec.ts': 14,
  'apps/auth-service/test/scale.integration-spec.ts': 32,
  'apps/auth-service/test/session-bounds.integration-spec.ts': 56,
  'apps/auth-service/test/sessions.integration-spec.ts': 14,
  'apps/auth-service/test/stopped-servers.integration-spec.ts': 9,
  'apps/settings-service/test/changes.integration-spec.ts': 11,
  'apps/settings-service/test/client-watch.integration-spec.ts': 10,
  'apps/settings-service/test/database-crash.integration-spec.ts': 17,
  'apps/settings-service/test/generated-values.integration-spec.ts': 15,
  'apps/settings-service/test/hostile-requests.integration-spec.ts': 11,
  'apps/settings-service/test/openfeature.integration-spec.ts': 12,
  'apps/settings-service/test/outage.integration-spec.ts': 11,
  'apps/settings-service/test/past.integration-spec.ts': 27,
  'apps/settings-service/test/slow-work.integration-spec.ts': 14,
  'apps/task-service/test/admin.integration-spec.ts': 13,
  'apps/task-service/test/bad-neighbours.integration-spec.ts': 30,
  'apps/task-service/test/bulkheads.integration-spec.ts': 13,
  'apps/task-service/test/business-unit-state.integration-spec.ts': 10,
  'apps/task-service/test/calendar-limits.integration-spec.ts': 13,
  'apps/task-service/test/calendar-removal.integration-spec.ts': 17,
  'apps/task-service/test/calendar-rollouts.integration-spec.ts': 46,
  'apps/task-service/test/facilities-scale.integration-spec.ts': 14,
  'apps/task-service/test/generation-turns.integration-spec.ts': 21,
  'apps/task-service/test/hostile-requests.integration-spec.ts': 15,
  'apps/task-service/test/idle-cluster.integration-spec.ts': 20,
  'apps/task-service/test/instance-releases.integration-spec.ts': 22,
  'apps/task-service/test/locked-events.integration-spec.ts': 11,
  'apps/task-service/test/outbound.integration-spec.ts': 18,
  'apps/task-service/test/outbox-turns.integration-spec.ts': 9,
  'apps/task-service/test/page-bytes.integration-spec.ts': 15,
  'apps/task-service/test/reconciliation.integration-spec.ts': 22,
  'apps/task-service/test/retries.integration-spec.ts': 9,
  'apps/task-service/test/schedule-model.integration-spec.ts': 65,
  'libs/access-tokens/test/package.integration-spec.ts': 10,
  'libs/database/test/hosts.integration-spec.ts': 10,
  'libs/messaging/test/recovery.integration-spec.ts': 35,
  'libs/service-defaults/test/connections.integration-spec.ts': 27,
  'libs/service-defaults/test/tracing.integration-spec.ts': 9,
};

/**
 * Distributes test files over suites of about equal duration.
 * @param files paths below the workspace
 * @returns the suites, the longest first
 */
export function planSuites(files: readonly string[]): string[][] {
  const total = files.reduce((sum, file) => sum + secondsOf(file), 0);
  const suites = Array.from({ length: Math.max(1, Math.round(total / SUITE_SECONDS)) }, () => ({
    files: [] as string[],
    seconds: 0,
  }));
  // The longest file first, each into the suite that is shortest so far.
  for (const file of files.toSorted(
    (one, other) => secondsOf(other) - secondsOf(one) || compare(one, other),
  )) {
    const shortest = suites.reduce((least, each) => (each.seconds < least.seconds ? each : least));
    shortest.files.push(file);
    shortest.seconds += secondsOf(file);
  }
  return suites
    .filter((suite) => suite.files.length > 0)
    .sort((one, other) => other.seconds - one.seconds)
    .map((suite) => suite.files);
}

/** Nest has one logger for all of its modules, and services replace it: each file begins with the default. */
const HEADER = `const { ConsoleLogger, Logger } = require('@nestjs/common');
const useDefaultLogger = () => Logger.overrideLogger(new ConsoleLogger());
`;

/** Returns the source of a suite. The path of each file comes before the names of its tests. */
export function suiteSource(files: readonly string[], toWorkspace: string): string {
  const parts = files.map(
    (file) => `describe('${file}', () => {
  beforeAll(useDefaultLogger);
  require('${toWorkspace}/${file}');
});
`,
  );
  return HEADER + parts.join('');
}

function secondsOf(file: string): number {
  return SECONDS[file] ?? DEFAULT_SECONDS;
}

function compare(one: string, other: string): number {
  return one < other ? -1 : 1;
}
