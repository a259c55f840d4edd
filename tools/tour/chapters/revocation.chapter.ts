import { grantedTokens, readClaims, refusedWith, same, type WalkResponse } from '../expectations.ts';
import type { TourSettings } from '../addresses.ts';
import type { Walk, WalkRequest } from '../walk.ts';
import type { Travellers } from './tokens.chapter.ts';

const CUSTOMER = 2;
/** The promise is 2 s; the rest is for a machine that is busy with something else. */
const EFFECT_TIMEOUT_MS = 5_000;

/** A token is revoked and, within moments, refused by all three services. */
export async function revocationChapter(
  walk: Walk,
  settings: TourSettings,
  { ivy }: Travellers,
): Promise<void> {
  walk.chapter('A token is revoked');
  const token = await issueToken(walk, settings);
  const { jti } = readClaims(token);
  const revocation = `${settings.auth}/auth/revocations/jti/${jti}`;
  const places = placesThatTake(settings, token, revocation);
  for (const { service, request, status } of places) {
    await walk.step(`The ${service} service takes the token`, request, (response) => {
      same('the status', response.status, status);
      return status === 404 ? 'Let in; there is no such revocation yet.' : 'Let in.';
    });
  }
  await walk.step('Ivy revokes it', { method: 'PUT', url: revocation, token: ivy }, (response) => {
    same('the status', response.status, 200);
    same('the body', response.text, '');
    return 'Recorded with the current time.';
  });
  const revokedAtMs = performance.now();
  for (const { service, request } of places) await refusedSoon(walk, service, request, revokedAtMs);
  const exchange = { method: 'POST', url: `${settings.auth}/auth/token/bearer`, token } as const;
  await walk.step('It cannot be exchanged for another one either', exchange, (response) => {
    refusedWith(response, 401, 6);
    return 'Reason 6, TokenRevoked.';
  });
  await sessionChapter(walk, settings);
  await introspectionChapter(walk, settings);
  await applicationChapter(walk, settings, ivy);
}

/** Carl looks at what is signed in as him, and logs out: his token is refused everywhere. */
async function sessionChapter(walk: Walk, settings: TourSettings): Promise<void> {
  walk.chapter('Carl logs out');
  const token = await issueToken(walk, settings);
  const { sid } = readClaims(token);
  const sessions = `${settings.auth}/auth/sessions`;
  const other = readClaims(await issueToken(walk, settings));
  const end = { method: 'DELETE', url: `${sessions}/${other.sid}`, token } as const;
  await walk.step('He ends another session of his, on a device that he has lost', end, (response) => {
    same('the status', response.status, 204);
    return `Session ${other.sid} has ended.`;
  });
  const list = { method: 'GET', url: sessions, token } as const;
  await walk.step('His sessions', list, (response) => {
    same('the status', response.status, 200);
    same('the session is listed', response.text.includes(sid), true);
    same('the ended session is listed', response.text.includes(other.sid), false);
    return 'This one is among them, the ended one is not.';
  });
  const logout = { method: 'POST', url: `${settings.auth}/auth/logout`, token } as const;
  await walk.step('He logs out', logout, (response) => {
    same('the status', response.status, 204);
    return `Session ${sid} has ended.`;
  });
  const endedAtMs = performance.now();
  const places = placesThatTake(settings, token, `${settings.auth}/auth/revocations/jti/none`);
  for (const { service, request } of places) await refusedSoon(walk, service, request, endedAtMs);
}

/** A service of another team reads who issues tokens, and asks whether one is good; also after its session has ended. */
async function introspectionChapter(walk: Walk, settings: TourSettings): Promise<void> {
  walk.chapter('A service of another framework checks tokens');
  const metadata = { method: 'GET', url: `${settings.auth}/.well-known/openid-configuration` } as const;
  await walk.step('It discovers the issuer', metadata, (response) => {
    same('the status', response.status, 200);
    const { introspection_endpoint: endpoint } = response.json as Record<string, string>;
    same('the introspection endpoint', endpoint?.endsWith('/auth/introspect'), true);
    return 'Keys and introspection are where the metadata says.';
  });
  const token = await issueToken(walk, settings);
  const credentials = Buffer.from(`demo-backend:${settings.backendSecret}`).toString('base64');
  const ask: WalkRequest = {
    method: 'POST',
    url: `${settings.auth}/auth/introspect`,
    headers: { authorization: `Basic ${credentials}` },
    body: new URLSearchParams({ token }),
  };
  const isActive = (expected: boolean, explanation: string) => (response: WalkResponse) => {
    same('the status', response.status, 200);
    same('active', (response.json as { active?: boolean }).active, expected);
    return explanation;
  };
  await walk.step('It asks about a token of Carl’s', ask, isActive(true, 'Active, with its claims.'));
  const logout = { method: 'POST', url: `${settings.auth}/auth/logout`, token } as const;
  await walk.step('Carl logs out', logout, (response) => {
    same('the status', response.status, 204);
    return 'The session has ended.';
  });
  const verify = isActive(false, 'Not active, and nothing else is told.');
  await walk.stepUntil('It asks again', ask, verify, EFFECT_TIMEOUT_MS);
}

/** Every token of an application is revoked; the application goes on with new ones. */
async function applicationChapter(walk: Walk, settings: TourSettings, ivy: string): Promise<void> {
  walk.chapter('An application’s tokens are revoked');
  const application = { applicationKey: 'demo-reports', sharedSecret: settings.reportsSecret };
  const token = await issueToken(walk, settings, application);
  const revocation = `${settings.auth}/auth/revocations/client_id/demo-reports`;
  await walk.step(
    'Ivy revokes what demo-reports has got',
    { method: 'PUT', url: revocation, token: ivy },
    (response) => {
      same('the status', response.status, 200);
      return 'Every token issued to it up to now.';
    },
  );
  const revokedAtMs = performance.now();
  const places = placesThatTake(settings, token, `${settings.auth}/auth/revocations/jti/none`);
  for (const { service, request } of places) await refusedSoon(walk, service, request, revokedAtMs);
  const fresh = await issueToken(walk, settings, application);
  const me = { method: 'GET', url: `${settings.auth}/auth/me`, token: fresh } as const;
  await walk.step('It goes on with the new one', me, (response) => {
    same('the status', response.status, 200);
    return 'Let in.';
  });
}

/** Per service a route that any valid token opens, and its response while the token is good. */
function placesThatTake(
  settings: TourSettings,
  token: string,
  revocation: string,
): { service: string; request: WalkRequest; status: number }[] {
  const get = (url: string): WalkRequest => ({ method: 'GET', url, token });
  return [
    { service: 'auth', request: get(revocation), status: 404 },
    {
      service: 'settings',
      request: get(`${settings.settings}/platform/v1/diagnostics/database`),
      status: 200,
    },
    { service: 'task', request: get(`${settings.task}/Instances?facilityId=501&pageSize=1`), status: 200 },
  ];
}

async function refusedSoon(
  walk: Walk,
  service: string,
  request: WalkRequest,
  revokedAtMs: number,
): Promise<void> {
  await walk.stepUntil(
    `The ${service} service refuses it from now on`,
    request,
    (response) => {
      same('the status', response.status, 401);
      return `Refused, ${Math.round(performance.now() - revokedAtMs)} ms after the revocation (2 s are promised).`;
    },
    EFFECT_TIMEOUT_MS,
  );
}

async function issueToken(
  walk: Walk,
  settings: TourSettings,
  application = { applicationKey: 'demo-backend', sharedSecret: settings.backendSecret },
): Promise<string> {
  const response = await walk.step(
    `${application.applicationKey} gets a token for Carl with its shared secret`,
    {
      method: 'POST',
      url: `${settings.auth}/auth/token/trust-simple`,
      body: {
        ...application,
        persona: CUSTOMER,
        userName: 'carl.customer',
      },
    },
    (granted) =>
      `A token of its own, with the identifier ${readClaims(grantedTokens(granted).accessToken).jti}.`,
  );
  return grantedTokens(response).accessToken;
}
