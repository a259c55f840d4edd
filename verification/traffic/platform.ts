import type { BrokerManagement } from '#platform/broker-management.ts';
import type { PortName } from '#platform/ports.ts';
import type { Statement } from '#platform/postgresql.ts';
import type { ServiceName } from '#platform/programs.ts';
import type { BusName } from '#platform/test-platform.ts';
import { eventually } from '#platform/waiting.ts';

/** The interface of a platform for loads and audits: a `TestPlatform`, or a platform in containers. */
export interface PlatformUnderLoad {
  url(name: Extract<PortName, ServiceName | Neighbour>): string;
  /** Runs statements on a service's database as the server's administrator. Returns the rows of the last. */
  query<Row extends object>(service: ServiceName, ...statements: readonly Statement[]): Promise<Row[]>;
  bus(name: BusName): Pick<BrokerManagement, 'queueTotals'>;
  readonly settings: Readonly<Record<'mainBusUrl' | 'schedulingBusUrl', string>>;
}

type Neighbour = 'customers' | 'scheduling' | 'completions';

/** Retry limit. A failover of the database, or a broken proxy, also ends the connections of observers. */
const FAILOVER_LIMIT_MS = 60_000;

/**
 * Runs `platform.query`, with retries while the database is unreachable. For statements that may run twice.
 * @throws the last error, after 60 s of retries
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
