import type { BrokerManagement } from '#platform/broker-management.ts';
import type { PortName } from '#platform/ports.ts';
import type { Statement } from '#platform/postgresql.ts';
import type { ServiceName } from '#platform/programs.ts';
import type { BusName } from '#platform/test-platform.ts';
import { eventually } from '#platform/waiting.ts';

/** A platform as its load and its audits reach it: a `TestPlatform`, or one that runs in containers. */
export interface PlatformUnderLoad {
  url(name: Extract<PortName, ServiceName | Neighbour>): string;
  /** Runs statements on a service's database as the server's administrator; gives the rows of the last. */
  query<Row extends object>(service: ServiceName, ...statements: readonly Statement[]): Promise<Row[]>;
  bus(name: BusName): Pick<BrokerManagement, 'queueTotals'>;
  readonly settings: Readonly<Record<'mainBusUrl' | 'schedulingBusUrl', string>>;
}

type Neighbour = 'customers' | 'scheduling' | 'completions';

/** A database that fails over, or a proxy that loses it, ends the connections of observers too. */
const FAILOVER_LIMIT_MS = 60_000;

/**
 * `platform.query`, repeated while the database cannot be reached. For statements that may run twice.
 * @throws the last error, a minute after the first
 */
export function queryPersistently<Row extends object>(
  platform: Pick<PlatformUnderLoad, 'query'>,
  service: ServiceName,
  ...statements: readonly Statement[]
): Promise<Row[]> {
  return eventually(() => platform.query<Row>(service, ...statements), {
    timeoutMs: FAILOVER_LIMIT_MS,
    intervalMs: 250,
  });
}
