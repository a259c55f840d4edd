import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { BusinessUnitChangeV1 } from '@platform/contracts';
import type { PlainBus } from '@platform/messaging';
import { SYSTEM_CLOCK } from '@platform/time';
import { z } from 'zod';
import { connectLogged, namespaceVariable } from '../neighbour/bus.client';
import { Ledger } from '../neighbour/ledger.store';
import {
  brokerVariable,
  neighbourConfigShape,
  portVariable,
  stateDirectoryVariable,
} from '../neighbour/run-neighbour';
import type { Neighbour } from '../neighbour/run-neighbour';
import { HttpProblem, createNeighbourServer } from '../neighbour/server';
import { BusinessUnits } from './business-units';
import type { BusinessUnit, BusinessUnitChange, RequestedChange } from './business-units';
import { addCustomersRoutes } from './customers.routes';

export const customersConfig = z.object({
  ...neighbourConfigShape,
  PORT: portVariable.default(3011),
  RABBITMQ_MAIN_URL: brokerVariable,
  MESSAGE_NAMESPACE: namespaceVariable,
  STATE_DIRECTORY: stateDirectoryVariable,
});
export type CustomersConfig = z.output<typeof customersConfig>;

/** The customers service: facilities and business units over HTTP, and IBusinessUnitChangeV1 on the main bus. */
export async function createCustomers(config: CustomersConfig): Promise<Neighbour> {
  let stopping = false;
  const server = createNeighbourServer('customers', config.LOG_LEVEL, {
    isReady: () => !stopping && bus.isReady(),
  });
  const ledger = await Ledger.open<BusinessUnitChange>(
    join(config.STATE_DIRECTORY, 'business-unit-changes.jsonl'),
    SYSTEM_CLOCK,
  );
  const bus = await connectLogged(
    { url: config.RABBITMQ_MAIN_URL, name: 'customers-service', namespace: config.MESSAGE_NAMESPACE },
    server.log,
  );
  const units = new BusinessUnits();
  for (const { record } of ledger.entries()) units.apply(record);
  addCustomersRoutes(server, {
    find: (id) => units.find(id),
    findByPlt: (plt) => units.findByPlt(plt),
    change: (unit, requested) => publishChange({ units, ledger, bus }, unit, requested),
  });
  return {
    server,
    markStopping: () => {
      stopping = true;
    },
    release: async () => {
      await bus.close();
      await ledger.close();
    },
  };
}

interface Customers {
  units: BusinessUnits;
  ledger: Ledger<BusinessUnitChange>;
  bus: PlainBus;
}

async function publishChange(
  { units, ledger, bus }: Customers,
  unit: BusinessUnit,
  requested: RequestedChange,
): Promise<BusinessUnitChange> {
  const change = units.draft(unit, requested, randomUUID(), SYSTEM_CLOCK.now());
  try {
    await bus.publish(BusinessUnitChangeV1, change, { messageId: change.eventId });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new HttpProblem(503, 'Service Unavailable', `the change was not published: ${reason}`);
  }
  // After the confirm: the ledger says what the broker has, and the unit is what its published changes made it.
  await ledger.append(change.eventId, change);
  units.apply(change);
  return change;
}
