import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { HttpProblem, requireBearer } from '../neighbour/server';
import type { BusinessUnit, BusinessUnitChange, ChangeType, RequestedChange } from './business-units';
import { FACILITIES } from './business-units';

/** What the routes need from the service behind them. */
export interface CustomersDirectory {
  find(businessUnitId: number): BusinessUnit | null;
  findByPlt(plt: string): BusinessUnit | null;
  /** Publishes the change; resolves once the broker has it. @throws {HttpProblem} 503 when it cannot be had to take it. */
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

/** Adds the lookups (a bearer token is required) and the three changes, which whoever plays the customers' staff calls. */
export function addCustomersRoutes(server: FastifyInstance, directory: CustomersDirectory): void {
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
