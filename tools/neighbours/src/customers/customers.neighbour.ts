import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { BusinessUnitChangeV1 } from '@platform/contracts';
import type { PlainBus } from '@platform/messaging';
import { SYSTEM_CLOCK } from '@platform/time';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { busNeighbourShape, connectLogged, createBusNeighbour } from '../neighbour/bus';
import { Ledger } from '../neighbour/ledger';
import { HttpProblem, portVariable, requireBearer } from '../neighbour/neighbour';
import type { Neighbour } from '../neighbour/neighbour';
import { BusinessUnits, FACILITIES } from './business-units';
import type { BusinessUnit, BusinessUnitChange, ChangeType, RequestedChange } from './business-units';

export const customersConfig = z.object({
  ...busNeighbourShape,
  PORT: portVariable.default(3011),
});
export type CustomersConfig = z.output<typeof customersConfig>;

/**
 * Creates the customers service: facilities and business units over HTTP, and IBusinessUnitChangeV1 on the
 * main bus.
 */
export function createCustomers(config: CustomersConfig): Promise<Neighbour> {
  return createBusNeighbour('customers', config.LOG_LEVEL, async (server) => {
    const path = join(config.STATE_DIRECTORY, 'business-unit-changes.jsonl');
    const ledger = await Ledger.open<BusinessUnitChange>(path, SYSTEM_CLOCK);
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
    return { buses: [bus], ledgers: [ledger] };
  });
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
  // Only after the broker's confirm: the ledger and the unit must reflect exactly the published changes.
  await ledger.append(change.eventId, change);
  units.apply(change);
  return change;
}

/** Operations behind the routes. */
interface CustomersDirectory {
  find(businessUnitId: number): BusinessUnit | null;
  findByPlt(plt: string): BusinessUnit | null;
  /**
   * Publishes the change; resolves once the broker has confirmed it.
   * @throws {HttpProblem} 503 if the broker does not confirm it.
   */
  change(unit: BusinessUnit, requested: RequestedChange): Promise<BusinessUnitChange>;
}

const CHANGE_ROUTES = {
  activate: 'Activated',
  deactivate: 'Deactivated',
  update: 'Updated',
} as const satisfies Record<string, ChangeType>;

const idParams = z.object({ id: z.coerce.number().int().positive() });
const pltQuery = z.object({ plt: z.string().min(1) });
const changeBody = z
  .object({
    facilityIds: z.array(z.int().positive()).max(10_000).optional(),
    timeZone: z.string().min(1).max(100).optional(),
  })
  .nullish();

/**
 * Adds the lookups, which require a bearer token, and the three changes, which anyone in the role of the
 * customers' staff may call.
 */
function addCustomersRoutes(server: FastifyInstance, directory: CustomersDirectory): void {
  addLookups(server, directory);
  for (const [command, changeType] of Object.entries(CHANGE_ROUTES)) {
    server.post(`/business-units/:id/${command}`, async (request, reply) => {
      const unit = getUnit(directory, idParams.parse(request.params).id);
      const body = changeBody.parse(request.body);
      const change = await directory.change(unit, { ...body, changeType });
      return reply.code(202).send(change);
    });
  }
}

function addLookups(server: FastifyInstance, directory: CustomersDirectory): void {
  const onRequest = requireBearer;
  server.get('/facilities/:id', { onRequest }, (request) => {
    const { id } = idParams.parse(request.params);
    const facility = FACILITIES.find(({ facilityId }) => facilityId === id);
    if (facility === undefined) throw notFound(`facility ${String(id)}`);
    return facility;
  });
  server.get('/business-units', { onRequest }, (request) => {
    const { plt } = pltQuery.parse(request.query);
    const unit = directory.findByPlt(plt);
    if (unit === null) throw notFound('a business unit with this PLT code');
    return unit.businessUnitId;
  });
  server.get('/business-units/:id', { onRequest }, (request) =>
    getUnit(directory, idParams.parse(request.params).id),
  );
  server.get(
    '/business-units/:id/facility-access',
    { onRequest },
    (request) => getUnit(directory, idParams.parse(request.params).id).facilityIds,
  );
}

function getUnit(directory: CustomersDirectory, businessUnitId: number): BusinessUnit {
  const unit = directory.find(businessUnitId);
  if (unit === null) throw notFound(`business unit ${String(businessUnitId)}`);
  return unit;
}

function notFound(what: string): HttpProblem {
  return new HttpProblem(404, 'Not Found', `${what} does not exist`);
}
