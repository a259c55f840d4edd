import { randomBytes, randomUUID } from 'node:crypto';
import { makeAccessToken, signTrustRequest } from '#platform/callers.ts';
import type { ServiceName } from '#platform/programs.ts';
import type { TestPlatform } from '#platform/test-platform.ts';
import { openQueue } from '../event-queue.ts';
import type { HttpLoad, LoadRequest } from '../load.ts';

/** An operation whose cost is measured. */
export interface Operation {
  /** Operation id in the OpenAPI document. */
  readonly id: string;
  readonly service: ServiceName;
  /** Ordinary pace in requests per second, if it differs from the default. */
  readonly pace?: number;
  /**
   * Creates the data that the requests need.
   * @returns a function that makes the next request of a worker from the body of its last response
   */
  readonly prepare: (platform: TestPlatform, load: HttpLoad) => NextRequest | Promise<NextRequest>;
}

export type NextRequest = (worker: number, lastBody: string | null) => LoadRequest;

const BACKEND = {
  applicationKey: 'demo-backend',
  sharedSecret: 'demo-backend-secret-for-local-use-only-000001',
};
const REPORTS = {
  applicationKey: 'demo-reports',
  sharedSecret: 'demo-reports-secret-for-local-use-only-000002',
};
const CUSTOMER = { persona: 2, userName: 'carl.customer' };
export const SETTINGS = '/platform/v1/subsystems/Billing/settings';
const SCHEDULE = { name: 'Check the fire extinguishers', schedule: '0 2 * * *', timeZone: 'Europe/Berlin' };
const FACILITIES = 1_000;

export const OPERATIONS: readonly Operation[] = [
  {
    id: 'signInWithSharedSecret',
    service: 'auth',
    prepare: () => () => post('/auth/token/trust-simple', { ...REPORTS, ...CUSTOMER }),
  },
  {
    id: 'signInWithTrustSignature',
    service: 'auth',
    prepare: () => () => {
      // Each authentication code is accepted only once, so each request signs a different name.
      const unsigned = {
        requestTimestampUtc: new Date().toISOString(),
        applicationKey: BACKEND.applicationKey,
        persona: 4,
        userName: 'tech.4711',
        serviceProviderID: 815,
        name: `Jörg ${randomUUID()}`,
      };
      const authenticationCode = signTrustRequest(unsigned, BACKEND.sharedSecret);
      return post('/auth/token/trust', { ...unsigned, authenticationCode });
    },
  },
  {
    id: 'refreshToken',
    service: 'auth',
    prepare: () => {
      const tokens = new Map<number, string>();
      return (worker, lastBody) => {
        if (lastBody !== null)
          tokens.set(worker, (JSON.parse(lastBody) as { refreshToken: string }).refreshToken);
        const refreshToken = tokens.get(worker);
        return refreshToken === undefined
          ? post('/auth/token/trust-simple', { ...BACKEND, ...CUSTOMER })
          : post('/auth/token/refresh', { refreshToken, hmacSigning: false });
      };
    },
  },
  {
    id: 'exchangeBearerToken',
    service: 'auth',
    prepare: async (_platform, load) => {
      const signIn: unknown = JSON.parse(
        await load.send(post('/auth/token/trust-simple', { ...REPORTS, ...CUSTOMER })),
      );
      const authorization = `Bearer ${(signIn as { accessToken: string }).accessToken}`;
      return () => post('/auth/token/bearer', {}, { authorization });
    },
  },
  {
    id: 'signInWithPassword',
    service: 'auth',
    pace: 10,
    prepare: () => () => post('/auth/token/user', { user: 'carl.customer', password: 'Demo-Passw0rd!' }),
  },
  {
    id: 'putSetting',
    service: 'settings',
    prepare: (platform) => {
      const headers = headersOf(platform);
      return (worker) => ({
        method: 'PUT',
        path: `${SETTINGS}/Currency-${worker}`,
        headers,
        expect: 200,
        body: JSON.stringify({ settingValue: { code: 'EUR', note: randomBytes(100).toString('hex') } }),
      });
    },
  },
  {
    id: 'getSettingValue',
    service: 'settings',
    prepare: async (platform, load) => {
      const headers = headersOf(platform);
      const body = JSON.stringify({ settingValue: { code: 'EUR' } });
      await load.send({ method: 'PUT', path: `${SETTINGS}/Currency`, headers, body, expect: 200 });
      return () => ({
        method: 'GET',
        path: `${SETTINGS}/Currency/value`,
        headers: { authorization: headers.authorization },
        expect: 200,
      });
    },
  },
  {
    id: 'createSchedule',
    service: 'task',
    pace: 20,
    prepare: async (platform) => {
      const headers = headersOf(platform);
      await openQueue(platform.settings.mainBusUrl);
      let count = 0;
      return () => post('/Schedules', { ...SCHEDULE, facilityId: 1 + (count++ % FACILITIES) }, headers, 201);
    },
  },
];

/** Returns a function that sends a worker's next request, and keeps the body for the request after it. */
export function sender(load: HttpLoad, next: NextRequest): (worker: number) => Promise<void> {
  const bodies = new Map<number, string>();
  return async (worker) => void bodies.set(worker, await load.send(next(worker, bodies.get(worker) ?? null)));
}

export function post(path: string, body: object, headers = {}, expect = 200): LoadRequest {
  const type = { 'content-type': 'application/json' };
  return { method: 'POST', path, headers: { ...type, ...headers }, body: JSON.stringify(body), expect };
}

export function headersOf({ settings }: TestPlatform): { authorization: string; 'content-type': string } {
  return { authorization: `Bearer ${makeAccessToken(settings)}`, 'content-type': 'application/json' };
}
