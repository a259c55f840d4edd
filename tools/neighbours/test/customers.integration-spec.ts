import { RunningNeighbours, exchange } from './running-neighbours';

describe('customers', () => {
  let neighbours: RunningNeighbours;

  beforeEach(async () => {
    neighbours = await RunningNeighbours.open();
  });

  afterEach(() => neighbours.close());

  it('serves the lookups only to a caller with a bearer token', async () => {
    const customers = await neighbours.customers();
    expect(await neighbours.get(customers, '/business-units?plt=PLT-77')).toBe(77);
    expect(await neighbours.get(customers, '/business-units/77/facility-access')).toEqual([501, 502]);
    expect(await neighbours.get(customers, '/facilities/501')).toMatchObject({ facilityId: 501 });
    expect((await customers.server.inject('/business-units/77/facility-access')).statusCode).toBe(401);
  });

  it.each(['/business-units/1', '/business-units?plt=PLT-1', '/facilities/1', '/nowhere'])(
    'responds 404 with a problem for %s',
    async (url) => {
      const customers = await neighbours.customers();
      const response = await customers.server.inject({ url, headers: { authorization: 'Bearer any' } });
      expect(response.statusCode).toBe(404);
      expect(response.headers['content-type']).toContain('application/problem+json');
    },
  );

  it('publishes an activation as IBusinessUnitChangeV1 and remembers it across a restart', async () => {
    await neighbours.broker.management.bindQueue(exchange('IBusinessUnitChangeV1'), 'seen');
    const customers = await neighbours.customers();
    const response = await customers.server.inject({ method: 'POST', url: '/business-units/77/activate' });
    expect(response.statusCode).toBe(202);
    const [message] = await neighbours.broker.management.get('seen', 10);
    const envelope = JSON.parse(message?.body ?? '');
    expect(envelope.message).toEqual({
      eventId: response.json().eventId,
      occurredAtUtc: expect.any(String),
      businessUnitId: 77,
      facilityIds: [501, 502],
      changeType: 'Activated',
      timeZone: 'Europe/Berlin',
    });
    expect(envelope.messageId).toBe(envelope.message.eventId);

    await neighbours.stop(customers);

    const again = await neighbours.customers();
    expect(await neighbours.get(again, '/business-units/77')).toMatchObject({ status: 'Active' });
  });

  it('responds 503 and changes nothing while no queue is bound to the change', async () => {
    const customers = await neighbours.customers();
    const response = await customers.server.inject({ method: 'POST', url: '/business-units/77/activate' });
    expect(response.statusCode).toBe(503);
    expect(await neighbours.get(customers, '/business-units/77')).toMatchObject({ status: 'Inactive' });
  });
});
