import { commandLine, someOf } from '#platform/command-line.ts';

const DAY_MS = 86_400_000;

/** One step of `npm test`. */
export interface Step {
  readonly name: string;
  /** A program of node_modules/.bin and its arguments. */
  readonly command: readonly [string, ...string[]];
  /**
   * Jest reports to count: those of the projects with this Nx target
   * (`test-results/<project>.<report>.json`), or that of one run for all projects
   * (`test-results/<report>.json`). Null if the step is one check.
   */
  readonly tests: { readonly target: string | null; readonly report: string } | null;
  readonly needsServers: boolean;
  /** Whether it only reads the sources and runs none of them. */
  readonly isStatic: boolean;
  /** Whether it mostly waits, so that a long step may run beside it. */
  readonly isWaiting?: true;
  /**
   * Whether it is too slow for every `npm test`. Such steps run with `--all`, as on the build server, two at
   * a time.
   */
  readonly isLong?: true;
  /** Whether it runs only if it is named. */
  readonly isOnDemand?: true;
}

const nx = (target: string, ...flags: string[]): readonly [string, ...string[]] => [
  'nx',
  'run-many',
  '-t',
  target,
  '--output-style=static',
  ...flags,
];

function staticCheck(name: string, ...command: [string, ...string[]]): Step {
  return { name, command, tests: null, needsServers: false, isStatic: true };
}

/**
 * Returns a test of a whole tool, which starts its own platforms.
 * @param file name of the test, or its beginning
 */
function longTest(name: string, project: string, file = ''): Step {
  const report = `${name}.long`;
  return {
    name,
    command: [
      'jest',
      '--config=jest.integration.cjs',
      '--runInBand',
      '--json',
      `--outputFile=test-results/${report}.json`,
      `--roots=${project}`,
      `--testPathPatterns=${project}/test/${file}`,
    ],
    tests: { target: null, report },
    needsServers: true,
    isStatic: false,
    isLong: true,
  };
}

/** Returns the day of the year in UTC; 1 is the first of January. */
function dayOfYear(date: Date): number {
  return Math.floor((date.getTime() - Date.UTC(date.getUTCFullYear(), 0, 1)) / DAY_MS) + 1;
}

/** All steps, cheapest first. A failure does not stop the others, so that one run shows everything. */
export const STEPS: readonly Step[] = [
  staticCheck('format', 'prettier', '--check', '--log-level=warn', '.'),
  staticCheck('lint', 'eslint', '--max-warnings=0', '.'),
  staticCheck('types', 'tsc', '-p', 'tsconfig.json'),
  // Files, exports and dependencies that nothing uses.
  staticCheck('unused', 'knip', '--no-progress'),
  {
    name: 'unit',
    // One run for all projects starts only once, and keeps all processors busy until its end.
    command: [
      'jest',
      '--config=jest.unit.cjs',
      '--maxWorkers=2',
      '--json',
      '--outputFile=test-results/unit.json',
    ],
    tests: { target: null, report: 'unit' },
    needsServers: false,
    isStatic: false,
  },
  {
    name: 'build',
    command: nx('build', '--parallel=2'),
    tests: null,
    needsServers: false,
    isStatic: false,
  },
  {
    name: 'integration',
    command: nx('integration', '--parallel=2'),
    tests: { target: 'integration', report: 'integration' },
    needsServers: true,
    isStatic: false,
  },
  {
    name: 'e2e',
    // Whole platforms, which mostly wait: for the end of an outage, or for the return of a replica.
    command: nx('e2e'),
    tests: { target: 'e2e', report: 'e2e' },
    needsServers: true,
    isStatic: false,
    isWaiting: true,
  },
  // The long steps, longest first. `costs` comes last, when few other steps still run: on a busy machine it
  // would also count more background work.
  {
    name: 'mutants',
    // A third of the mutants, another one each day.
    command: ['node', 'verification/mutants/main.ts', '--built', '--part', String(dayOfYear(new Date()))],
    tests: null,
    needsServers: false,
    isStatic: false,
    isLong: true,
    isOnDemand: true,
  },
  longTest('fuzz', 'verification/fuzz'),
  {
    name: 'ship',
    // Runs images, compose and manifests in containers, and writes its own report.
    command: nx('ship'),
    tests: { target: 'ship', report: 'ship' },
    needsServers: false,
    isStatic: false,
    isLong: true,
  },
  longTest('cluster', 'verification/scenarios/chaos', 'cluster'),
  longTest('chaos', 'verification/scenarios/chaos', 'chaos'),
  longTest('upgrade', 'verification/scenarios/chaos', 'upgrade'),
  longTest('drill', 'verification/scenarios/drill'),
  longTest('libraries', 'tools/build'),
  {
    name: 'costs',
    command: ['node', 'verification/bench/costs/main.ts', '--check'],
    tests: null,
    needsServers: false,
    isStatic: false,
    isLong: true,
  },
];

const NAMES = STEPS.map(({ name }) => name);

/**
 * Returns the steps that `npm test -- --only a,b` names, in their usual order. Without names, returns all but
 * the long ones, which `--all` adds, and those on demand.
 * @throws {ArgumentsError} if a name is not a step.
 */
export function chooseSteps(args: readonly string[]): readonly Step[] {
  const usage = `[-- --all | --only <step>[,<step>…]] with steps of: ${NAMES.join(', ')}`;
  const { all, only } = commandLine(
    'npm test',
    usage,
    'Runs every check and test of this checkout and counts them at the end.',
  )
    .option('--only <steps>', 'run only these', someOf(NAMES))
    .option('--all', 'run the long steps too, as on the build server', false)
    .parse(args, { from: 'user' })
    .opts<{ all: boolean; only?: string[] }>();
  const isIncluded = ({ isLong, isOnDemand }: Step): boolean =>
    isOnDemand !== true && (all || isLong !== true);
  return STEPS.filter((step) => only?.includes(step.name) ?? isIncluded(step));
}
