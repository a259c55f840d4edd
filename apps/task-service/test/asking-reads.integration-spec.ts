import type { ServerResponse } from 'node:http';
import { Persona } from '@platform/personas';
import { bearer, eventually, startHttpDouble, testAccessToken } from '@platform/testing';
import type { HttpDouble } from '@platform/testing';
import { CUSTOMER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

/** HTTP gets eight of these connections: six for reads, of which one caller may use two. */
const POOL = { DATABASE_POOL_SIZE: '14', DATABASE_POOL_CONSUMERS: '4', DATABASE_POOL_RELAY: '2' };
/** Concurrent reads that may wait for auth-service: half of the six. */
const ASKING_AT_ONCE = 3;
const CALLERS = 8;

/** A caller whose token omits the facilities, because they did not fit. */
const overflowing = (person: number) =>
  bearer({
    sub: `personid:${String(person)}`,
    personId: person,
    personas: Persona.Customer,
    facilities: [],
    overflow: ['facilities'],
  });

describe('reads that fetch the facilities of their caller from auth-service', () => {
  let auth: HttpDouble;
  let service: TaskFixture;
  /** Requests to which auth-service has not responded yet. */
  let pendingResponses: ServerResponse[];

  beforeAll(async () => {
    pendingResponses = [];
    const bodies: Record<string, unknown> = {
      '/auth/token/trust': { wasSuccessful: true, accessToken: testAccessToken() },
      '/auth/revocations': [],
    };
    auth = await startHttpDouble((request, response) => {
      const { pathname } = new URL(request.url ?? '/', 'http://auth');
      request.resume();
      response.setHeader('content-type', 'application/json');
      if (pathname === '/auth/me') pendingResponses.push(response);
      else response.end(JSON.stringify(bodies[pathname] ?? {}));
    });
    service = await startTaskService({ env: { ...POOL, AUTH_SERVICE_URL: auth.url } });
  });
  afterAll(async () => {
    await service.close();
    await auth.close();
  });

  it('hold at most half of the read slots while auth-service does not respond', async () => {
    const asking = Array.from({ length: CALLERS }, async (_none, index) => {
      const { status } = await service.api.get('/Instances').set(overflowing(2_000 + index));
      return status;
    });
    await eventually(() => expect(pendingResponses.length).toBe(ASKING_AT_ONCE));
    for (let index = 0; index < 3; index += 1) {
      const startedAt = performance.now();
      await service.api.get('/Instances?facilityId=501').set(CUSTOMER).expect(200);
      expect(performance.now() - startedAt).toBeLessThan(1_000);
    }
    expect(pendingResponses.length).toBe(ASKING_AT_ONCE);
    const answered: ServerResponse[] = [];
    // A waiting read sends its request as soon as an earlier one has its response.
    await eventually(() => {
      for (const response of pendingResponses.splice(0)) answered.push(response.end('{"facilities":[501]}'));
      expect(answered.length).toBe(CALLERS);
    });
    expect(await Promise.all(asking)).toEqual(Array.from({ length: CALLERS }, () => 200));
  }, 60_000);
});
