/** `npm run capacity`: what so many facilities, users and schedules need, by the measured costs in docs/. Runs nothing. */
import { InvalidArgumentError } from 'commander';
import { commandLine, runMain } from '#platform/command-line.ts';
import { firstLimit, type Limits, needOf, scaledTo, type Workload } from './capacity.ts';

const DECADES = [1e5, 1e6, 1e7, 1e8, 1e9];
/** A replica is given another one when it keeps this much of a processor busy. One more may be lost. */
const CORES_PER_REPLICA = 0.6;

function main(): void {
  const given = readArguments();
  printNeed(given);
  console.log('\nIn the same proportions, by the rows of the largest table:\n');
  console.log(
    '      rows      users  schedules  PostgreSQL cores       GB   WAL MB/s  messages/s  nearest limit',
  );
  for (const decade of DECADES) console.log(decadeLine(decade, given));
}

function number(text: string): number {
  if (!(Number(text) >= 0) || text === '') throw new InvalidArgumentError('It must be a number, e.g. 1e6.');
  return Number(text);
}

function readArguments(): Workload & Limits {
  return commandLine('npm run capacity', '[-- flags]', 'Computes what a workload needs from measured costs.')
    .option('--facilities <n>', 'that generate once a day, all at one instant', number, 1e4)
    .option('--users <n>', 'people who sign in', number, 1e5)
    .option('--schedules <n>', 'daily ones', number, 1e5)
    .option('--settings <n>', 'stored values', number, 1e5)
    .option('--sign-ins <n>', 'of each user a day', number, 1)
    .option('--refreshes <n>', 'of each user a day', number, 1)
    .option('--reads <n>', 'of settings by each user a day', number, 50)
    .option('--writes <n>', 'of settings by each user a day', number, 0.1)
    .option('--days <n>', 'that instances and history are kept', number, 365)
    .option('--peak <n>', 'the busiest hour beside the average', number, 5)
    .option('--cores <n>', 'of one PostgreSQL', number, 16)
    .option('--gigabytes <n>', 'of its disk', number, 2_000)
    .option('--wal-megabytes-per-second <n>', 'that it writes', number, 100)
    .option('--messages-per-second <n>', 'of one broker', number, 10_000)
    .parse()
    .opts<Workload & Limits>();
}

function printNeed(given: Workload): void {
  const need = needOf(given);
  const { auth, settings, task, postgresql } = need.cores;
  for (const [name, cores] of Object.entries({ auth, settings, task }))
    console.log(
      `${name.padEnd(10)} ${cores.toFixed(1).padStart(8)} cores, ${Math.ceil(cores / CORES_PER_REPLICA) + 1} replicas`,
    );
  console.log(
    `PostgreSQL ${postgresql.toFixed(1).padStart(8)} cores, ${need.walMegabytesPerSecond.toFixed(1)} MB/s of log`,
  );
  console.log(`broker     ${need.messagesPerSecond.toFixed(0).padStart(8)} messages/s`);
  console.log(`storage    ${need.gigabytes.toFixed(0).padStart(8)} GB`);
}

function decadeLine(rows: number, given: Workload & Limits): string {
  const workload = scaledTo(rows, given);
  const need = needOf(workload);
  const { name, used } = firstLimit(need, given);
  const cells: [string, number][] = [
    [rows.toExponential(0), 10],
    [workload.users.toPrecision(2), 11],
    [workload.schedules.toPrecision(2), 11],
    [need.cores.postgresql.toPrecision(2), 18],
    [need.gigabytes.toPrecision(2), 9],
    [need.walMegabytesPerSecond.toPrecision(2), 11],
    [need.messagesPerSecond.toPrecision(2), 12],
  ];
  const percent = `${(used * 100).toPrecision(2)} %`;
  return `${cells.map(([cell, width]) => cell.padStart(width)).join('')}  ${name}, ${percent}`;
}

runMain(main);
