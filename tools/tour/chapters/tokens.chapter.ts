import { randomUUID } from 'node:crypto';
import { signTrustRequest } from '#platform/callers.ts';
import {
  Difference,
  grantedTokens,
  holds,
  readClaims,
  refusedWith,
  same,
  type WalkResponse,
} from '../expectations.ts';
import type { Walk, WalkRequest } from '../walk.ts';

const INTERNAL_PARTNER = 1;
const CUSTOMER = 2;
const AUTHENTICATION_FAILED = 1;
const REFRESH_TOKEN_IS_NOT_VALID = 4;
const ACCESS_TOKEN_LIFETIME_SECONDS = 24 * 60 * 60;

/** Access tokens of the tour's two people, an internal partner and a customer. */
export interface Travellers {
  ivy: string;
  carl: string;
}

/** Gets tokens by password, by signature and by refresh, and shows refusals. */
export async function tokensChapter(walk: Walk): Promise<Travellers> {
  walk.chapter('Tokens');
  const ivy = await logIn(walk);
  const { carl, refreshToken } = await trustedBackend(walk);
  await refresh(walk, refreshToken);
  return { ivy, carl };
}

async function logIn(walk: Walk): Promise<string> {
  const { auth, password } = walk.settings;
  const logInAs = (user: string, text: string) =>
    ({ method: 'POST', url: `${auth}/auth/token/user`, body: { user, password: text } }) as const;
  const title = 'Ivy, an employee, logs in with her password';
  const response = await walk.step(title, logInAs('ivy.internal', password), (granted) => {
    const { userId, personas, exp, iat, groups } = readClaims(grantedTokens(granted).accessToken);
    same('the claim userId', userId, 9001);
    same('the claim personas', personas & INTERNAL_PARTNER, INTERNAL_PARTNER);
    same('the lifetime in seconds', exp - iat, ACCESS_TOKEN_LIFETIME_SECONDS);
    holds('the claim groups', groups?.includes('Dispatch') === true, 'a list with Dispatch', groups);
    return 'A token for 24 hours: user 9001, persona InternalPartner, member of the group Dispatch.';
  });
  // The name does not exist: wrong passwords for Ivy would lock her out when the tour is repeated.
  const guess = { ...logInAs(`nobody-${randomUUID().slice(0, 8)}`, 'guess'), status: 401 };
  await walk.step('Somebody guesses at a password', guess, (refused) => {
    refusedWith(refused, AUTHENTICATION_FAILED);
    return 'Reason 1, AuthenticationFailed; an unknown user and a wrong password get the same response.';
  });
  return grantedTokens(response).accessToken;
}

async function trustedBackend(walk: Walk): Promise<{ carl: string; refreshToken: string }> {
  const { auth, backendSecret } = walk.settings;
  const fields = {
    requestTimestampUtc: new Date().toISOString(),
    applicationKey: 'demo-backend',
    persona: CUSTOMER,
    userName: 'carl.customer',
  };
  const body = { ...fields, authenticationCode: signTrustRequest(fields, backendSecret) };
  const request = { method: 'POST', url: `${auth}/auth/token/trust`, body } as const;
  const title = 'A backend signs a request (HMAC-SHA256) and acts for Carl, a customer';
  const response = await walk.step(title, request, (granted) => {
    const claims = readClaims(grantedTokens(granted).accessToken);
    same('the claim personId', claims.personId, 1001);
    same('the claim personas', claims.personas, CUSTOMER);
    same('the claim facilities', claims.facilities?.toSorted(), [501, 502]);
    return 'The secret never travelled. Carl is person 1001 with the facilities 501 and 502.';
  });
  const replay = { ...request, status: 401 };
  await walk.step('Somebody replays the very same signed request', replay, (refused) => {
    refusedWith(refused, AUTHENTICATION_FAILED);
    return 'A signature works once: the replay is refused with reason 1.';
  });
  return { carl: grantedTokens(response).accessToken, refreshToken: refreshTokenOf(response) };
}

/**
 * A refresh token is rotated at each use. A client that lost the response may ask again until the next token
 * is used.
 */
async function refresh(walk: Walk, first: string): Promise<void> {
  const url = `${walk.settings.auth}/auth/token/refresh`;
  const exchange = (refreshToken: string): WalkRequest => ({ method: 'POST', url, body: { refreshToken } });
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
  const replay = { ...exchange(first), status: 401 };
  await walk.step('Somebody replays the first refresh token', replay, (response) => {
    refusedWith(response, REFRESH_TOKEN_IS_NOT_VALID);
    return 'Reason 4, RefreshTokenIsNotValid. After the 30 s a replay would revoke the whole family.';
  });
}

/** @throws {Difference} unless the response grants a refresh token */
function refreshTokenOf(response: WalkResponse): string {
  const { refreshToken } = grantedTokens(response);
  if (refreshToken === null) throw new Difference('refreshToken', 'a token for demo-backend', refreshToken);
  return refreshToken;
}

/** A user who is in no group. */
const SERVICES_USER = 9000;

/**
 * Shows the members of a group and who may pass an access point, with groups within groups; for internal
 * partners.
 */
export async function accessControlChapter(walk: Walk, { ivy, carl }: Travellers): Promise<void> {
  walk.chapter('Role members and access points');
  const { auth } = walk.settings;
  const members = `${auth}/auth/roles/SecurityEditor~~GroupName~~Operations/members`;
  const access = `${auth}/auth/accessPoints/SecurityEditor~~AccessPointName~~Scheduling/hasAccess`;
  await membersOfOperations(walk, { url: members, token: ivy });
  for (const [title, url, hasAccess, explanation] of [
    [
      'May Ivy do scheduling?',
      access,
      true,
      'Yes: Scheduling admits Operations, which she is in through Dispatch.',
    ],
    [
      `May user ${SERVICES_USER}?`,
      `${access}?expectedUserId=${SERVICES_USER}`,
      false,
      'No: in no group that Scheduling admits.',
    ],
  ] as const)
    await walk.step(title, { url, token: ivy }, (response) => {
      same('the body', response.json, { hasAccess });
      return explanation;
    });
  for (const [title, url] of [
    ['Carl, a customer, asks for the members', members],
    ['Carl asks for the access point', access],
  ] as const)
    await walk.step(title, { url, token: carl, status: 403 }, (response) => {
      const type = response.headers.get('content-type')?.split(';')[0];
      same('the content type', type, 'application/problem+json');
      return 'Refused: for internal partners and global administrators only.';
    });
}

async function membersOfOperations(walk: Walk, request: WalkRequest): Promise<void> {
  await walk.step('Ivy asks who is in Operations', request, (response) => {
    const body = response.json as { members: { value: string }[]; identityNames: string[] };
    const names = body.members.map(({ value }) => value);
    for (const name of ['Dispatch', 'NightShift', 'ivy.internal'])
      holds('the members', names.includes(name), `a list with ${name}`, names);
    same('how often each is listed', names.length, new Set(names).size);
    const { identityNames } = body;
    holds(
      'the identities',
      identityNames.includes('ivy.internal'),
      'a list with ivy.internal',
      identityNames,
    );
    return 'Operations holds Dispatch, which holds NightShift, which holds Operations: a cycle, walked once round.';
  });
}
