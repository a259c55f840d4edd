import { commandLine, someOf } from '#platform/command-line.ts';

const DAY_MS = 86_400_000;

/** One step of `npm test`. */
export interface Step {
  readonly name: string;
  /** A program of node_modules/.bin and its arguments. */
  readonly command: readonly [string, ...string[]];
  /**
   * Whose Jest reports are counted: the projects' with this Nx target
   * (`test-results/<project>.<report>.json`), or that of one run for all projects
   * (`test-results/<report>.json`); null: the step is one check.
   */
  readonly tests: { readonly target: string | null; readonly report: string } | null;
  readonly needsServers: boolean;
  /** Reads the sources and runs nothing of them. */
  readonly isStatic: boolean;
  /** Too slow for every `npm test`: run by the build server, with `--all`, three at a time. */
  readonly isLong?: true;
  /** Run only where it is named. */
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

/** A test of a whole tool, which brings up platforms of its own. @param file of the test, or its beginning */
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

/** 1 on the first of January, in UTC. */
function dayOfYear(date: Date): number {
  return Math.floor((date.getTime() - Date.UTC(date.getUTCFullYear(), 0, 1)) / DAY_MS) + 1;
}

/** Cheapest first. All of them run, whatever fails, so that one run shows everything. */
export const STEPS: readonly Step[] = [
  staticCheck('format', 'prettier', '--check', '--log-level=warn', '.'),
  staticCheck('lint', 'eslint', '--max-warnings=0', '.'),
  staticCheck('types', 'tsc', '-p', 'tsconfig.json'),
  // Files, exports and dependencies that nothing uses.
  staticCheck('unused', 'knip', '--no-progress'),
  {
    name: 'unit',
    // One run for all projects: it starts once, and no project's end leaves a processor idle.
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
    // Whole platforms, which mostly wait: for outages to end, for a replica to come back.
    command: nx('e2e'),
    tests: { target: 'e2e', report: 'e2e' },
    needsServers: true,
    isStatic: false,
  },
  // The longest come first. Costs come last: background work of a slow machine falls to what they count.
  {
    name: 'mutants',
    // Another third of them each day.
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
    // Images, compose and manifests in containers, which it counts itself.
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
 * The steps that `npm test -- --only a,b` names, in their usual order; without names all but the long ones,
 * which `--all` adds, and those on demand.
 * @throws {ArgumentsError} when a name is not a step.
 */
export function chooseSteps(args: readonly string[]): readonly Step[] {
  const usage = `[-- --all | --only <step>[,<step>…]] with steps of: ${NAMES.join(', ')}`;
  const { all, only } = commandLine(
    'npm test',
    usage,
    'Runs every check and test of this checkout and counts them at the end.',
  )
    .option('--only <steps>', 'only these', someOf(NAMES))
    .option('--all', 'the long ones too, as on the build server', false)
    .parse(args, { from: 'user' })
    .opts<{ all: boolean; only?: string[] }>();
  const isIncluded = ({ isLong, isOnDemand }: Step): boolean =>
    isOnDemand !== true && (all || isLong !== true);
  return STEPS.filter((step) => only?.includes(step.name) ?? isIncluded(step));
}
