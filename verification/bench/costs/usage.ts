import { setTimeout as delay } from 'node:timers/promises';
import { FriendlyError } from '#platform/errors.ts';
import { findStat } from '#platform/proc.ts';
import { SERVICE_NAMES, type ServiceName } from '#platform/programs.ts';
import type { TestPlatform } from '#platform/test-platform.ts';
import { processorTime } from '../processor-time.ts';

/** The parts of the platform whose processor time is measured separately. */
export const PARTS = [...SERVICE_NAMES, 'postgresql', 'rabbitmq'] as const;
export type Part = (typeof PARTS)[number];

/** A figure for each part of the platform, all replicas of a service together. */
export type ByPart = Readonly<Record<Part, number>>;

/** The usage of the platform during some work. */
export interface Usage<Result> {
  /** Busy processors. */
  readonly cores: ByPart;
  readonly walBytesPerSecond: number;
  readonly seconds: number;
  readonly result: Result;
}

/** Measures the usage of the platform during `work`. Linux only. */
export async function watchUsage<Result>(
  platform: TestPlatform,
  work: () => Promise<Result>,
): Promise<Usage<Result>> {
  const walBefore = await walPosition(platform);
  const before = processorSeconds(platform);
  const startedAtMs = performance.now();
  const result = await work();
  const seconds = (performance.now() - startedAtMs) / 1_000;
  const after = processorSeconds(platform);
  const walAfter = await walPosition(platform);
  const cores = byPart((part) => (after[part] - before[part]) / seconds);
  return { cores, walBytesPerSecond: (walAfter - walBefore) / seconds, seconds, result };
}

/** Measures the usage of the idle platform. */
export function watchIdle(platform: TestPlatform, seconds: number): Promise<Usage<void>> {
  return watchUsage(platform, () => delay(seconds * 1_000));
}

export function byPart(figure: (part: Part) => number): ByPart {
  return {
    auth: figure('auth'),
    settings: figure('settings'),
    task: figure('task'),
    postgresql: figure('postgresql'),
    rabbitmq: figure('rabbitmq'),
  };
}

/** Processor seconds used so far. */
function processorSeconds(platform: TestPlatform): ByPart {
  const servers = processorTime();
  if (servers === null) throw new FriendlyError('Processor time is read from /proc, which only Linux has.');
  return {
    auth: secondsOfService(platform, 'auth'),
    settings: secondsOfService(platform, 'settings'),
    task: secondsOfService(platform, 'task'),
    postgresql: servers.postgresql,
    rabbitmq: servers.rabbitmq,
  };
}

function secondsOfService({ programs }: TestPlatform, service: ServiceName): number {
  const replicas = programs.filter(({ name }) => name.startsWith(`${service}-service`));
  return replicas.reduce((sum, { pid }) => sum + (findStat(pid)?.cpuSeconds ?? 0), 0);
}

async function walPosition(platform: TestPlatform): Promise<number> {
  const [row] = await platform.query<{ bytes: number }>(
    'task',
    `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 AS bytes`,
  );
  return row!.bytes;
}
