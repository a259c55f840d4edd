import { grantedTokens, readClaims, refusedWith, same } from '../expectations.ts';
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
}

/** Carl looks at what is signed in as him, and logs out: his token is refused everywhere. */
async function sessionChapter(walk: Walk, settings: TourSettings): Promise<void> {
  walk.chapter('Carl logs out');
  const token = await issueToken(walk, settings);
  const { sid } = readClaims(token);
  const list = { method: 'GET', url: `${settings.auth}/auth/sessions`, token } as const;
  await walk.step('His sessions', list, (response) => {
    same('the status', response.status, 200);
    same('the session is listed', response.text.includes(sid), true);
    return 'This one is among them.';
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

async function issueToken(walk: Walk, settings: TourSettings): Promise<string> {
  const response = await walk.step(
    'The backend gets another token for Carl, this time with its shared secret',
    {
      method: 'POST',
      url: `${settings.auth}/auth/token/trust-simple`,
      body: {
        applicationKey: 'demo-backend',
        sharedSecret: settings.backendSecret,
        persona: CUSTOMER,
        userName: 'carl.customer',
      },
    },
    (granted) =>
      `A token of its own, with the identifier ${readClaims(grantedTokens(granted).accessToken).jti}.`,
  );
  return grantedTokens(response).accessToken;
}
