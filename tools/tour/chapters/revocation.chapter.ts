import { grantedTokens, readClaims, refusedWith, same, type WalkResponse } from '../expectations.ts';
import type { Walk, WalkRequest } from '../walk.ts';
import type { Travellers } from './tokens.chapter.ts';

const CUSTOMER = 2;
/**
 * Time in ms until every service must refuse a revoked token: 2 s are promised, the rest allows for a busy
 * machine.
 */
const EFFECT_TIMEOUT_MS = 5_000;

/** Revokes a token, which all three services then refuse within moments. */
export async function revocationChapter(walk: Walk, { ivy }: Travellers): Promise<void> {
  walk.chapter('A token is revoked');
  const { auth } = walk.settings;
  const token = await issueToken(walk);
  const url = `${auth}/auth/revocations/jti/${readClaims(token).jti}`;
  for (const [service, request] of routesThatAccept(walk, token, url)) {
    const explanation = service === 'auth' ? 'Let in; there is no such revocation yet.' : 'Let in.';
    await walk.step(`The ${service} service takes the token`, request, explanation);
  }
  await walk.step('Ivy revokes it', { method: 'PUT', url, token: ivy }, (response) => {
    same('the body', response.text, '');
    return 'Recorded with the current time.';
  });
  await refusedSoon(walk, token, url);
  const exchange = { method: 'POST', url: `${auth}/auth/token/bearer`, token, status: 401 } as const;
  await walk.step('It cannot be exchanged for another one either', exchange, (response) => {
    refusedWith(response, 6);
    return 'Reason 6, TokenRevoked.';
  });
  await sessionChapter(walk);
  await introspectionChapter(walk);
  await applicationChapter(walk, ivy);
}

/** Carl lists his sessions and logs out; then his token is refused everywhere. */
async function sessionChapter(walk: Walk): Promise<void> {
  walk.chapter('Carl logs out');
  const sessions = `${walk.settings.auth}/auth/sessions`;
  const token = await issueToken(walk);
  const { sid } = readClaims(token);
  const other = readClaims(await issueToken(walk));
  const end = { method: 'DELETE', url: `${sessions}/${other.sid}`, token, status: 204 } as const;
  const ended = `Session ${other.sid} has ended.`;
  await walk.step('He ends another session of his, on a device that he has lost', end, ended);
  await walk.step('His sessions', { url: sessions, token }, (response) => {
    same('the session is listed', response.text.includes(sid), true);
    same('the ended session is listed', response.text.includes(other.sid), false);
    return 'This one is among them, the ended one is not.';
  });
  await walk.step('He logs out', logout(walk, token), `Session ${sid} has ended.`);
  await refusedSoon(walk, token);
}

/**
 * A service of another team discovers the issuer and introspects a token, before and after the end of its
 * session.
 */
async function introspectionChapter(walk: Walk): Promise<void> {
  walk.chapter('A service of another framework checks tokens');
  const { auth, backendSecret } = walk.settings;
  const metadata = { url: `${auth}/.well-known/openid-configuration` };
  await walk.step('It discovers the issuer', metadata, (response) => {
    const { introspection_endpoint: endpoint } = response.json as Record<string, string>;
    same('the introspection endpoint', endpoint?.endsWith('/auth/introspect'), true);
    return 'Keys and introspection are where the metadata says.';
  });
  const token = await issueToken(walk);
  const credentials = Buffer.from(`demo-backend:${backendSecret}`).toString('base64');
  const ask: WalkRequest = {
    method: 'POST',
    url: `${auth}/auth/introspect`,
    headers: { authorization: `Basic ${credentials}` },
    body: new URLSearchParams({ token }),
  };
  const isActive = (expected: boolean, explanation: string) => (response: WalkResponse) => {
    same('active', (response.json as { active?: boolean }).active, expected);
    return explanation;
  };
  await walk.step('It asks about a token of Carl’s', ask, isActive(true, 'Active, with its claims.'));
  await walk.step('Carl logs out', logout(walk, token), 'The session has ended.');
  const verify = isActive(false, 'Not active, and nothing else is disclosed.');
  await walk.stepUntil('It asks again', ask, verify, EFFECT_TIMEOUT_MS);
}

/** Revokes every token of an application, which continues with new ones. */
async function applicationChapter(walk: Walk, ivy: string): Promise<void> {
  walk.chapter('An application’s tokens are revoked');
  const { auth, reportsSecret } = walk.settings;
  const application = { applicationKey: 'demo-reports', sharedSecret: reportsSecret };
  const token = await issueToken(walk, application);
  const revoke = {
    method: 'PUT',
    url: `${auth}/auth/revocations/client_id/demo-reports`,
    token: ivy,
  } as const;
  await walk.step('Ivy revokes the tokens of demo-reports', revoke, 'Every token issued to it up to now.');
  await refusedSoon(walk, token);
  const fresh = await issueToken(walk, application);
  await walk.step('It goes on with the new one', { url: `${auth}/auth/me`, token: fresh }, 'Let in.');
}

function logout({ settings }: Walk, token: string): WalkRequest {
  return { method: 'POST', url: `${settings.auth}/auth/logout`, token, status: 204 };
}

/**
 * Returns a route of each service that any valid token opens.
 * @param revocation URL of one that does not exist
 */
function routesThatAccept({ settings }: Walk, token: string, revocation: string): [string, WalkRequest][] {
  return [
    ['auth', { url: revocation, token, status: 404 }],
    ['settings', { url: `${settings.settings}/platform/v1/diagnostics/database`, token }],
    ['task', { url: `${settings.task}/Instances?facilityId=501&pageSize=1`, token }],
  ];
}

/** Waits until every service refuses a token that was just revoked. */
async function refusedSoon(
  walk: Walk,
  token: string,
  revocation = `${walk.settings.auth}/auth/revocations/jti/none`,
): Promise<void> {
  const revokedAtMs = performance.now();
  for (const [service, request] of routesThatAccept(walk, token, revocation)) {
    const verify = (): string =>
      `Refused, ${Math.round(performance.now() - revokedAtMs)} ms after the revocation (2 s are promised).`;
    const title = `The ${service} service refuses it from now on`;
    await walk.stepUntil(title, { ...request, status: 401 }, verify, EFFECT_TIMEOUT_MS);
  }
}

async function issueToken(
  walk: Walk,
  application = { applicationKey: 'demo-backend', sharedSecret: walk.settings.backendSecret },
): Promise<string> {
  const url = `${walk.settings.auth}/auth/token/trust-simple`;
  const body = { ...application, persona: CUSTOMER, userName: 'carl.customer' };
  const title = `${application.applicationKey} gets a token for Carl with its shared secret`;
  const response = await walk.step(title, { method: 'POST', url, body }, (granted) => {
    const { jti } = readClaims(grantedTokens(granted).accessToken);
    return `A token of its own, with the identifier ${jti}.`;
  });
  return grantedTokens(response).accessToken;
}
