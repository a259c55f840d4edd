import { Persona } from '@platform/personas';
import { ServiceLogger } from '@platform/service-defaults';
import { eventually } from '@platform/testing';
import { SYSTEM_CLOCK } from '@platform/time';
import request from 'supertest';
import type { Response } from 'supertest';
import { startDoorsApplication } from './doors-application';
import type { DoorsApplication } from './doors-application';
import { HOSTILE_TOKENS } from './hostile-tokens';
import { es256Token, rs256Token, token } from './token-builder';
import type { TokenParts } from './token-builder';

/** Returns a token issued now. */
function current(parts: TokenParts = {}, make = token): string {
  const now = Math.floor(SYSTEM_CLOCK.now().getTime() / 1_000);
  const times = { iat: now, nbf: now, auth_time: now, exp: now + 600 };
  return make({ ...parts, claims: { ...times, ...(parts.claims as object) } });
}

describe('AccessTokenGuard', () => {
  let started: DoorsApplication;

  beforeEach(async () => {
    started = await startDoorsApplication();
  });
  afterEach(() => started.app.close());

  const get = (path: string, bearer?: string): Promise<Response> => {
    const test = request(started.app.getHttpServer()).get(path);
    return (bearer === undefined ? test : test.set('Authorization', `Bearer ${bearer}`)).then(
      (response) => response,
    );
  };
  const status = async (path: string, bearer?: string): Promise<number> => (await get(path, bearer)).status;

  it.each([
    ['HS256', token],
    ['RS256', rs256Token],
    ['ES256', es256Token],
  ] as const)('admits a caller with a valid %s token, both uncached and cached', async (_alg, make) => {
    const bearer = current({}, make);
    for (let time = 0; time < 2; time += 1) {
      const response = await get('/doors/any', bearer);
      expect([response.status, response.body]).toEqual([200, { subject: 'personid:1001', personas: 2 }]);
    }
  });

  it('responds with the bare challenge when there is no token', async () => {
    for (const headers of [
      {},
      { Authorization: 'Basic aXZ5OnB3' },
      { Authorization: 'Bearer' },
      { Authorization: 'Bearer a b' },
    ]) {
      const response = await request(started.app.getHttpServer()).get('/doors/any').set(headers);
      expect(response.status).toBe(401);
      expect(response.headers['www-authenticate']).toBe('Bearer');
      expect(response.headers['content-type']).toMatch(/^application\/problem\+json/);
      expect(response.body).toMatchObject({ status: 401, detail: 'A bearer token is required.' });
    }
  });

  it('refuses every hostile token with 401, never with 5xx', async () => {
    const sendable = Object.entries(HOSTILE_TOKENS).filter(
      ([, [, text]]) => text !== '' && text.length < 8_000 && /^[\x21-\x7e]+$/.test(text),
    );
    expect(sendable.length).toBeGreaterThan(90);
    for (const [title, [, text]] of sendable) {
      const response = await get('/doors/any', text);
      expect([title, response.status]).toEqual([title, 401]);
      expect(response.headers['www-authenticate']).toMatch(/^Bearer/);
    }
    // Node itself refuses a header this long: 431.
    expect(await status('/doors/any', 'A'.repeat(1_000_000))).toBe(431);
  });

  it('says that a token expired', async () => {
    const response = await get('/doors/any', current({ claims: { iat: 1_000, nbf: 1_000, exp: 2_000 } }));
    expect(response.headers['www-authenticate']).toBe(
      'Bearer error="invalid_token", error_description="The access token expired."',
    );
  });

  it('needs no token on public routes, and ignores any', async () => {
    expect(await status('/doors/open')).toBe(200);
    expect(await status('/doors/open', 'nonsense')).toBe(200);
    expect(await status('/lobby')).toBe(200);
  });

  it('guards a method with a requirement in a public controller', async () => {
    expect(await status('/lobby/office')).toBe(401);
    expect(await status('/lobby/office', current())).toBe(403);
    expect(await status('/lobby/office', current({ claims: { personas: 1 } }))).toBe(200);
  });

  it.each([
    [Persona.Customer, 200],
    [Persona.Owner, 200],
    [Persona.Owner + Persona.Resident, 200],
    [Persona.InternalPartner, 403],
    [Persona.None, 403],
  ])('admits any of the required personas: %p → %p', async (personas, expected) => {
    const response = await get('/doors/customers-and-owners', current({ claims: { personas } }));
    expect(response.status).toBe(expected);
    if (expected === 403) {
      expect(response.headers['www-authenticate']).toBe('Bearer error="insufficient_scope"');
      expect(response.body).toMatchObject({ status: 403 });
    }
  });

  it.each([
    [{ personas: Persona.InternalPartner }, 200],
    [{ personas: Persona.Customer, roles: ['CustomerGlobalAdministrator'] }, 200],
    [{ personas: Persona.Customer, roles: ['customerglobaladministrator'] }, 403],
    [{ personas: 31 - Persona.InternalPartner }, 403],
  ])('recognises internal administrators: %p → %p', async (claims, expected) => {
    expect(await status('/doors/administrators', current({ claims }))).toBe(expected);
  });

  it('refuses a cached token once it is revoked', async () => {
    const bearer = current();
    expect(await status('/doors/any', bearer)).toBe(200);
    const revocationDate = new Date(SYSTEM_CLOCK.now().getTime() + 1_000).toISOString();
    started.revocations.push({ domain: 'svc-personid', identifier: '1001', revocationDate });
    await eventually(async () => expect(await status('/doors/any', bearer)).toBe(401));
    const response = await get('/doors/any', bearer);
    expect(response.body).toMatchObject({ detail: 'The access token was revoked.' });
  });

  it('refuses a cached token once its key is removed', async () => {
    const bearer = current();
    expect(await status('/doors/any', bearer)).toBe(200);
    started.keys.replace([]);
    expect(await status('/doors/any', bearer)).toBe(401);
  });

  it('responds 503 and is not ready once revocations are too old, then recovers', async () => {
    const bearer = current();
    expect(await status('/health/ready')).toBe(200);
    started.source.down = true;
    await eventually(async () => expect(await status('/doors/any', bearer)).toBe(503));
    expect((await get('/doors/any', bearer)).headers['retry-after']).toBe('1');
    expect(await status('/health/ready')).toBe(503);
    expect(await status('/doors/open')).toBe(200);
    started.source.down = false;
    await eventually(async () => expect(await status('/doors/any', bearer)).toBe(200));
    // The result of a readiness check is cached for 1 s.
    await eventually(async () => expect(await status('/health/ready')).toBe(200));
  });

  it('keeps two applications in one process apart', async () => {
    const other = await startDoorsApplication();
    other.keys.replace([]);
    const bearer = current({}, es256Token);
    expect(await status('/doors/any', bearer)).toBe(200);
    const elsewhere = await request(other.app.getHttpServer())
      .get('/doors/any')
      .set('Authorization', `Bearer ${bearer}`);
    expect(elsewhere.status).toBe(401);
    await other.app.close();
  });

  it('logs the reason why revocations cannot be read, and the recovery', async () => {
    let log = '';
    const sink = { write: (line: string) => void (log += line), flushSync: () => undefined };
    started.app.useLogger(new ServiceLogger({ name: 'doors', level: 'info' }, sink));
    // Nest buffers log lines until the application listens; this test flushes them itself.
    started.app.flushLogs();
    log = '';
    started.source.down = true;
    await eventually(() => {
      expect(log).toMatch(/"msg":"revocations cannot be read; tokens are refused once they are too old"/);
    });
    expect(JSON.parse(log.trim())).toMatchObject({
      level: 'warn',
      context: 'RevocationFeed',
      err: { message: 'down' },
    });
    started.source.down = false;
    await eventually(() => expect(log).toContain('"msg":"revocations are up to date again"'));
  });
});
