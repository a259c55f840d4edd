import { randomUUID } from 'node:crypto';
import {
  Difference,
  grantedTokens,
  holds,
  readClaims,
  refusedWith,
  same,
  type WalkResponse,
} from '../expectations.ts';
import { signTrustRequest } from '#platform/trust-signature.ts';
import type { TourSettings } from '../addresses.ts';
import type { Walk, WalkRequest } from '../walk.ts';

const INTERNAL_PARTNER = 1;
const CUSTOMER = 2;
const REFRESH_TOKEN_IS_NOT_VALID = 4;
const ACCESS_TOKEN_LIFETIME_SECONDS = 24 * 60 * 60;

/** Who walks: an internal partner and a customer, each with an access token. */
export interface Travellers {
  ivy: string;
  carl: string;
}

/** Tokens by password, by signature and by refresh; and what is refused. */
export async function tokensChapter(walk: Walk, settings: TourSettings): Promise<Travellers> {
  walk.chapter('Tokens');
  const ivy = await logIn(walk, settings);
  await wrongPassword(walk, settings);
  const { carl, refreshToken } = await trustedBackend(walk, settings);
  await refresh(walk, settings, refreshToken);
  return { ivy, carl };
}

async function logIn(walk: Walk, settings: TourSettings): Promise<string> {
  const response = await walk.step(
    'Ivy, an employee, logs in with her password',
    {
      method: 'POST',
      url: `${settings.auth}/auth/token/user`,
      body: { user: 'ivy.internal', password: settings.password },
    },
    (granted) => {
      const claims = readClaims(grantedTokens(granted).accessToken);
      same('the claim userId', claims.userId, 9001);
      same('the claim personas', claims.personas & INTERNAL_PARTNER, INTERNAL_PARTNER);
      same('the lifetime in seconds', claims.exp - claims.iat, ACCESS_TOKEN_LIFETIME_SECONDS);
      holds(
        'the claim groups',
        claims.groups?.includes('Dispatch') === true,
        'a list with Dispatch',
        claims.groups,
      );
      return 'A token for 24 hours: user 9001, persona InternalPartner, member of the group Dispatch.';
    },
  );
  return grantedTokens(response).accessToken;
}

async function wrongPassword(walk: Walk, settings: TourSettings): Promise<void> {
  await walk.step(
    'Somebody guesses at a password',
    {
      method: 'POST',
      url: `${settings.auth}/auth/token/user`,
      // A name that does not exist: a guess at Ivy's would count towards locking her out when the tour is repeated.
      body: { user: `nobody-${randomUUID().slice(0, 8)}`, password: 'guess' },
    },
    (response) => {
      refusedWith(response, 401, 1);
      return 'Reason 1, AuthenticationFailed; an unknown user and a wrong password get the same response.';
    },
  );
}

async function trustedBackend(
  walk: Walk,
  settings: TourSettings,
): Promise<{ carl: string; refreshToken: string }> {
  const fields = {
    requestTimestampUtc: new Date().toISOString(),
    applicationKey: 'demo-backend',
    persona: CUSTOMER,
    userName: 'carl.customer',
  };
  const request = {
    method: 'POST',
    url: `${settings.auth}/auth/token/trust`,
    body: { ...fields, authenticationCode: signTrustRequest(fields, settings.backendSecret) },
  } as const;
  const response = await walk.step(
    'A backend signs a request (HMAC-SHA256) and acts for Carl, a customer',
    request,
    (granted) => {
      const claims = readClaims(grantedTokens(granted).accessToken);
      same('the claim personId', claims.personId, 1001);
      same('the claim personas', claims.personas, CUSTOMER);
      same('the claim facilities', claims.facilities?.toSorted(), [501, 502]);
      return 'The secret never travelled. Carl is person 1001 with the facilities 501 and 502.';
    },
  );
  await walk.step('Somebody replays the very same signed request', request, (replayed) => {
    refusedWith(replayed, 401, 1);
    return 'A signature works once: the replay is refused with reason 1.';
  });
  return { carl: grantedTokens(response).accessToken, refreshToken: refreshTokenOf(response) };
}

/** A refresh token is rotated at each use; whoever lost the response may ask again until the next one is used. */
async function refresh(walk: Walk, settings: TourSettings, first: string): Promise<void> {
  const exchange = (refreshToken: string): WalkRequest => ({
    method: 'POST',
    url: `${settings.auth}/auth/token/refresh`,
    body: { refreshToken },
  });
  const renewed = await walk.step('The backend exchanges its refresh token', exchange(first), (response) => {
    const { accessToken, refreshToken } = grantedTokens(response);
    holds('the new refresh token', refreshToken !== first, 'another one', 'the same one');
    same('the claim personId', readClaims(accessToken).personId, 1001);
    return 'A fresh pair; the old refresh token has been rotated out.';
  });
  const second = refreshTokenOf(renewed);
  await walk.step('The response got lost on its way, and it asks once more', exchange(first), (response) => {
    same('whether it is the same successor', refreshTokenOf(response) === second, true);
    return 'The same successor again, for 30 s: a lost response logs nobody out.';
  });
  await walk.step('It goes on with the new one', exchange(second), (response) => {
    holds('the third refresh token', refreshTokenOf(response) !== second, 'another one', 'the same one');
    return 'Whoever holds the first token cannot go on from here.';
  });
  await walk.step('Somebody replays the first refresh token', exchange(first), (response) => {
    refusedWith(response, 401, REFRESH_TOKEN_IS_NOT_VALID);
    return 'Reason 4, RefreshTokenIsNotValid. After the 30 s a replay would revoke the whole family.';
  });
}

/** @throws {Difference} unless the response grants a refresh token */
function refreshTokenOf(response: WalkResponse): string {
  const { refreshToken } = grantedTokens(response);
  if (refreshToken === null) throw new Difference('refreshToken', 'a token for demo-backend', refreshToken);
  return refreshToken;
}
