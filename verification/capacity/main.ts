/**
 * `npm run capacity`: computes the need of a workload from the measured costs in docs/, or verifies it by a
 * run.
 */
import { InvalidArgumentError, type Command } from 'commander';
import { commandLine, onEndSignal, runMain, textTable } from '#platform/command-line.ts';
import { PrivateServers } from '#platform/test-platform.ts';
import { markdownTable } from '#verification/bench/costs/page.ts';
import { openWholePlatform } from '#verification/bench/costs/whole-platform.ts';
import { writeBetweenMarks } from '#verification/bench/costs/write-page.ts';
import { connectionsOf, firstLimit, type Limits, type Need, needOf, scaledTo } from './capacity.ts';
import { compareCores, type Comparison, NAMES, readable, TOLERANCE } from './comparison.ts';
import { playMix } from './mix.ts';
import { INPUTS, ratesOf, type Workload } from './workload.ts';

interface Flags extends Limits {
  readonly poolSize: number;
  readonly measure?: number;
  readonly write: boolean;
}

const DECADES = [1e5, 1e6, 1e7, 1e8, 1e9];
const WARM_UP_SECONDS = 60;
const MIX = { page: 'capacity.md', name: 'measured mix', command: 'npm run capacity' };

async function main(): Promise<void> {
  const given = readArguments();
  if (given.measure === undefined) printNeed(given);
  else process.exit((await measure(given, given.measure)) ? 0 : 1);
}

function readArguments(): Workload & Flags {
  const command = commandLine(
    'npm run capacity',
    '[-- flags]',
    'Computes the resources that a workload needs in its busiest hour, from measured costs. With --measure it generates the load of that hour and compares.',
  );
  for (const [name, [typical, help]] of Object.entries(INPUTS))
    command.option(`--${flagOf(name)} <n>`, help, number, typical);
  return addFlags(command).parse().opts<Workload & Flags>();
}

function addFlags(command: Command): Command {
  return command
    .option('--pool-size <n>', 'database connections of a replica (DATABASE_POOL_SIZE)', number, 20)
    .option('--cores <n>', 'limit: cores of one PostgreSQL', number, 16)
    .option('--gigabytes <n>', 'limit: disk of one PostgreSQL', number, 2_000)
    .option('--wal-megabytes-per-second <n>', 'limit: log of one PostgreSQL', number, 100)
    .option('--messages-per-second <n>', 'limit: messages of one broker', number, 10_000)
    .option(
      '--measure <minutes>',
      `generates the load of the busiest hour for this long, on one replica of each service; exits with 1 unless computed and measured figures agree within a factor of ${TOLERANCE}`,
      number,
    )
    .option('--write', 'writes the measurement into docs/capacity.md', false);
}

/** E.g. `signIns` becomes `sign-ins`. */
function flagOf(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

function number(text: string): number {
  if (!(Number(text) >= 0) || text === '') throw new InvalidArgumentError('It must be a number, e.g. 1e6.');
  return Number(text);
}

function printNeed(given: Workload & Flags): void {
  const need = needOf(given);
  for (const line of needTable(need, given)) console.log(line);
  console.log(
    `\n${readable(need.messagesPerSecond)} messages/s, ${readable(need.walMegabytesPerSecond)} MB/s of PostgreSQL's log`,
  );
  console.log(
    `storage: ${readable(need.gigabytes)} GB at full retention; ${readable(need.gigabytesADay)} GB a day`,
  );
  console.log('\nScaled proportionally, by the rows of the largest table:\n');
  const head = ['rows', 'users', 'schedules', 'PostgreSQL cores', 'GB', 'log MB/s', 'messages/s'];
  const rows = DECADES.map((decade) => decadeRow(decade, given));
  for (const line of textTable([...head, 'nearest limit'], rows)) console.log(line);
}

function needTable(need: Need, { poolSize }: Flags): string[] {
  const services = (['auth', 'settings', 'task'] as const).map((name) => {
    const memory = `${readable(need.megabytes[name])} MB`;
    return [NAMES[name], readable(need.cores[name]), String(need.replicas[name]), memory];
  });
  const { connections, megabytes } = connectionsOf(need, poolSize);
  const ofConnections = `${connections} connections: ${readable(megabytes)} MB besides shared buffers`;
  return textTable(
    ['', 'cores', 'replicas', 'memory'],
    [
      ...services,
      [NAMES.postgresql, readable(need.cores.postgresql), '', ofConnections],
      [NAMES.rabbitmq, readable(need.cores.rabbitmq), '', ''],
    ],
  );
}

function decadeRow(rows: number, given: Workload & Flags): string[] {
  const workload = scaledTo(rows, given);
  const need = needOf(workload);
  const { name, used } = firstLimit(need, given);
  return [
    rows.toExponential(0),
    readable(workload.users),
    readable(workload.schedules),
    readable(need.cores.postgresql),
    readable(need.gigabytes),
    readable(need.walMegabytesPerSecond),
    readable(need.messagesPerSecond),
    `${name}, ${readable(used * 100)} %`,
  ];
}

/** Measures the busiest hour. Returns true if the computed figures agree with the measured ones. */
async function measure(given: Workload & Flags, minutes: number): Promise<boolean> {
  const servers = await PrivateServers.open({}, (line) => console.log(`▸ ${line}`));
  onEndSignal(() => void servers.close().then(() => process.exit(130)));
  try {
    console.log('▸ starting one replica of each service, and the neighbours');
    const platform = await openWholePlatform(servers);
    console.log(
      `▸ generating the load of the busiest hour for ${minutes} minutes, after one minute of warm-up`,
    );
    const span = { warmUpSeconds: WARM_UP_SECONDS, seconds: minutes * 60 };
    const { cores } = await playMix(platform, given, span);
    const predicted = needOf(given, { auth: 1, settings: 1, task: 1 }).cores;
    return await report(compareCores(predicted, cores), given);
  } finally {
    await servers.close();
  }
}

async function report(comparisons: readonly Comparison[], given: Workload & Flags): Promise<boolean> {
  const head = ['cores', 'computed', 'measured', 'ratio', ''];
  const rows = comparisons.map(({ name, predicted, measured, ratio, isJudged, isWithin }) => {
    const verdict = !isJudged ? 'not judged' : isWithin ? '✔' : '✘';
    return [name, predicted.toFixed(4), measured.toFixed(4), ratio.toFixed(2), verdict];
  });
  for (const line of textTable(head, rows)) console.log(line);
  if (given.write) await writeBetweenMarks(MIX, [mixText(given), '', ...markdownTable(head, rows)]);
  const isWithin = comparisons.every((each) => each.isWithin || !each.isJudged);
  console.log(
    isWithin
      ? `✔ computed and measured figures agree within a factor of ${TOLERANCE}`
      : `✘ computed and measured figures differ by more than a factor of ${TOLERANCE}. On a machine other than that of docs/performance.md, run \`npm run costs\` first`,
  );
  return isWithin;
}

/** Describes the load, for docs/capacity.md. */
function mixText(given: Workload & Flags): string {
  const rates = Object.entries(ratesOf(given)).map(([work, rate]) => `${work} ${readable(rate)}`);
  return `Load for ${given.measure} minutes, per second: ${rates.join(', ')}; ${given.watchers} watchers.`;
}

runMain(main);
