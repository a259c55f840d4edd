import type { PrivateServers, TestPlatform } from '#platform/test-platform.ts';
import { HttpLoad } from '../load.ts';
import { type Cost, costOf } from './cost.ts';
import { leaveOutPageImages } from './counted.ts';
import { costsOfFires } from './fires.ts';
import { IDLE_HEAD, idleCosts, withMemory } from './idle.ts';
import { headersOf, type Operation, sender, SETTINGS } from './operations.ts';
import { atPace } from './pace.ts';
import { PACED_OPERATIONS } from './paced-operations.ts';
import { markdownTable } from './page.ts';
import { type Usage, watchUsage } from './usage.ts';
import { Watchers } from './watchers.ts';
import { openPlatform } from './whole-platform.ts';

/** Default pace in requests per second. */
const PACE = 200;
const WORKERS = 8;
const WARM_UP_SECONDS = 5;

const REQUEST_HEAD = ['work', 'µs service', 'µs PostgreSQL', 'µs RabbitMQ', 'WAL bytes'];

/**
 * Measures the costs of work at an ordinary pace, and of the idle platform, as two tables.
 * @param seconds duration of each load
 */
export async function pacedCosts(
  servers: PrivateServers,
  seconds: number,
): Promise<{ requests: string[]; idle: string[] }> {
  const platform = await openPlatform(servers);
  await leaveOutPageImages(platform);
  const { rows: idleRows, idle } = await idleCosts(platform, seconds);
  const rows: string[][] = [];
  const addRow = (id: string, cost: Cost): void => {
    const figures = [cost.service, cost.postgresql, cost.rabbitmq, cost.walBytes];
    rows.push([id, ...figures.map((figure) => String(Math.max(0, Math.round(figure))))]);
    console.log(`  ${rows.at(-1)!.join('  ')}`);
  };
  for (const operation of PACED_OPERATIONS) {
    const usage = await watchOperation(platform, operation, seconds);
    addRow(operation.id, costOf(usage, operation.service, { idle, count: usage.result }));
  }
  addRow('listChanges', await costOfChanges(platform, seconds, idle));
  const fires = await costsOfFires(platform, seconds, idle);
  addRow('fire', fires.fire);
  addRow('instance', fires.instance);
  const memory = await withMemory(platform, idleRows);
  await platform.stop();
  return {
    requests: markdownTable(REQUEST_HEAD, rows),
    idle: markdownTable(IDLE_HEAD, memory),
  };
}

async function watchOperation(
  platform: TestPlatform,
  { service, pace = PACE, prepare }: Operation,
  seconds: number,
): Promise<Usage<number>> {
  const load = new HttpLoad(platform.url(service), WORKERS);
  try {
    const send = sender(load, await prepare(platform, load));
    const loaded = { perSecond: pace, workers: WORKERS };
    await atPace({ seconds: WARM_UP_SECONDS, ...loaded }, send);
    return await watchUsage(platform, () => atPace({ seconds, ...loaded }, send));
  } finally {
    await load.close();
  }
}

const WATCHERS = 100;
const CHANGES_PER_SECOND = 4;

/**
 * Measures the cost of one response to a waiting client. It includes a share of the write that caused it: one
 * write leads to many responses.
 */
async function costOfChanges(platform: TestPlatform, seconds: number, idle: Usage<void>): Promise<Cost> {
  const watchers = new Watchers(platform, WATCHERS);
  const writer = new HttpLoad(platform.url('settings'), 1);
  const headers = headersOf(platform);
  const change = (): Promise<string> => {
    const body = JSON.stringify({ settingValue: performance.now() });
    return writer.send({ method: 'PUT', path: `${SETTINGS}/Watched`, headers, body, expect: 200 });
  };
  const pace = { perSecond: CHANGES_PER_SECOND, workers: 1 };
  await atPace({ seconds: WARM_UP_SECONDS, ...pace }, change);
  const responsesBefore = watchers.responses;
  const usage = await watchUsage(platform, () => atPace({ seconds, ...pace }, change));
  const count = watchers.responses - responsesBefore;
  await watchers.end();
  await writer.close();
  return costOf(usage, 'settings', { idle, count });
}
