/**
 * `npm run costs`: measures the costs of requests and idle processes, in counts that are equal on all
 * machines and in processor time.
 */
import { commandLine, onEndSignal, runMain, someOf } from '#platform/command-line.ts';
import { PrivateServers } from '#platform/test-platform.ts';
import { grownCounts, requestCosts } from './counted.ts';
import { IDLE_COSTS, PACED_COSTS, REQUEST_COSTS } from './page.ts';
import { pacedCosts } from './paced.ts';
import { writeBetweenMarks } from './write-page.ts';

const TABLES = ['requests', 'paced'] as const;

interface Arguments {
  readonly seconds: number;
  readonly pacedSeconds: number;
  readonly only: readonly (typeof TABLES)[number][];
  readonly write: boolean;
  readonly check: boolean;
}

async function main(): Promise<void> {
  const { seconds, pacedSeconds, only, write, check } = commandLine(
    'npm run costs',
    '[flags]',
    'Measures the cost of a request of each hot operation, and of idle processes.',
  )
    .option('--seconds <number>', 'duration of the load with concurrent requests', Number, 5)
    .option('--paced-seconds <number>', 'duration of each load at an ordinary pace', Number, 40)
    .option('--only <tables>', `only these tables: ${TABLES.join(', ')}`, someOf(TABLES), [...TABLES])
    .option('--no-write', 'do not change docs/performance.md')
    .option(
      '--check',
      'measure only counts, and fail if a request needs one more transaction, or twice the pages or bytes',
      false,
    )
    .parse()
    .opts<Arguments>();
  if (check) {
    const growth = await withServers(['--trace-gc'], grownCounts);
    console.log(growth.join('\n') || '✔ no request costs more than documented in docs/performance.md');
    process.exit(growth.length > 0 ? 1 : 0);
  }
  if (only.includes('requests')) {
    const table = await withServers(['--trace-gc'], (servers) => requestCosts(servers, seconds));
    if (write) await writeBetweenMarks(REQUEST_COSTS, table);
  }
  if (only.includes('paced')) {
    const { requests, idle } = await withServers([], (servers) => pacedCosts(servers, pacedSeconds));
    if (write) await writeBetweenMarks(PACED_COSTS, requests);
    if (write) await writeBetweenMarks(IDLE_COSTS, idle);
  }
  process.exit();
}

async function withServers<Result>(
  nodeOptions: readonly string[],
  work: (servers: PrivateServers) => Promise<Result>,
): Promise<Result> {
  const servers = await PrivateServers.open({ nodeOptions }, (line) => console.log(`▸ ${line}`));
  onEndSignal(() => void servers.close().then(() => process.exit(130)));
  try {
    return await work(servers);
  } finally {
    await servers.close();
  }
}

runMain(main);
