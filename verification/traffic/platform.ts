import type { BrokerManagement } from '#platform/broker-management.ts';
import type { PortName } from '#platform/ports.ts';
import type { Statement } from '#platform/postgresql.ts';
import type { ServiceName } from '#platform/programs.ts';
import type { BusName } from '#platform/test-platform.ts';

/** A platform as its load and its audits reach it: a `TestPlatform`, or one that runs in containers. */
export interface PlatformUnderLoad {
  url(name: Extract<PortName, ServiceName | Neighbour>): string;
  /** Runs statements on a service's database as the server's administrator; gives the rows of the last. */
  query<Row extends object>(service: ServiceName, ...statements: readonly Statement[]): Promise<Row[]>;
  bus(name: BusName): Pick<BrokerManagement, 'queueTotals'>;
  readonly settings: Readonly<Record<'mainBusUrl' | 'schedulingBusUrl', string>>;
}

type Neighbour = 'customers' | 'scheduling' | 'completions';
