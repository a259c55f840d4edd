import { commandLine, someOf } from '#platform/command-line.ts';

/** One step of `npm test`. */
export interface Step {
  readonly name: string;
  /** A program of node_modules/.bin and its arguments. */
  readonly command: readonly [string, ...string[]];
  /** The Nx target whose Jest reports (`test-results/<project>.<report>.json`) are counted; null: the step is one check. */
  readonly tests: { readonly target: string; readonly report: string } | null;
  readonly needsServers: boolean;
  /** Reads the sources and runs nothing of them. */
  readonly isStatic: boolean;
  /** Too slow for every `npm test`: run by the build server, with `--all`. */
  readonly isLong?: true;
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

/** Cheapest first. All of them run, whatever fails, so that one run shows everything. */
export const STEPS: readonly Step[] = [
  staticCheck('format', 'prettier', '--check', '--log-level=warn', '.'),
  staticCheck('lint', 'eslint', '--max-warnings=0', '.'),
  staticCheck('types', 'tsc', '-p', 'tsconfig.json'),
  // Files, exports and dependencies that nothing uses.
  staticCheck('unused', 'knip', '--no-progress'),
  {
    name: 'unit',
    command: nx('test', '--parallel=2'),
    tests: { target: 'test', report: 'unit' },
    needsServers: false,
    isStatic: false,
  },
  {
    name: 'build',
    command: nx('build', '--parallel=2'),
    ...{ tests: null, needsServers: false, isStatic: false },
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
  {
    name: 'long',
    // Short forms of tools that bring up platforms of their own.
    command: nx('e2e-long', '--parallel=2'),
    tests: { target: 'e2e-long', report: 'e2e-long' },
    ...{ needsServers: true, isStatic: false, isLong: true },
  },
  {
    name: 'costs',
    command: ['node', 'tools/bench/costs/main.ts', '--check'],
    ...{ tests: null, needsServers: false, isStatic: false, isLong: true },
  },
  {
    name: 'ship',
    // Images, compose and manifests in containers, which it counts itself. It brings its own servers.
    command: nx('ship'),
    tests: { target: 'ship', report: 'ship' },
    ...{ needsServers: false, isStatic: false, isLong: true },
  },
];

const NAMES = STEPS.map(({ name }) => name);

/**
 * The steps that `npm test -- --only a,b` names, in their usual order; without names all but the long ones, which `--all` adds.
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
  return STEPS.filter(({ name, isLong }) => only?.includes(name) ?? (all || isLong !== true));
}
