import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Caller } from '@platform/access-tokens';
import { Persona } from '@platform/personas';
import { CallerScope } from '../src/access/caller-scope.service';
import { MANAGERS } from '../src/access/route-personas';
import { loadTaskServiceConfig } from '../src/config';
import { environment } from './task-fixture';

const OVERFLOWING = {
  token: 'token',
  personas: Persona.Customer,
  facilities: [],
  facilityPersonas: null,
  overflow: ['facilities'],
} as unknown as Caller;

describe('the facilities of a caller whose token omits them', () => {
  let server: Server;
  let asked: string[];

  beforeAll(async () => {
    server = createServer((request, response) => {
      asked.push(request.url ?? '');
      response.setHeader('content-type', 'application/json').end('{"facilities":[501]}');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });

  beforeEach(() => {
    asked = [];
  });

  afterAll(() => server.close());

  it.each(['', '/', '/identity', '/identity/'])(
    'are read from auth-service below its base path %j',
    async (path) => {
      const authServiceUrl = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}${path}`;
      const config = loadTaskServiceConfig({
        ...environment(authServiceUrl),
        DATABASE_URL: 'postgres://localhost/none',
        RABBITMQ_MAIN_URL: 'amqp://localhost',
        RABBITMQ_SCHEDULING_URL: 'amqp://localhost',
      });
      expect(await new CallerScope(config).of(OVERFLOWING, MANAGERS)).toEqual([501]);
      expect(asked).toEqual([`${path.replace(/\/$/, '')}/auth/me`]);
    },
  );
});
