import { createHash, randomBytes } from 'node:crypto';
import {
  Difference,
  grantedTokens,
  readClaims,
  refusedWith,
  same,
  type WalkResponse,
} from '../expectations.ts';
import { CookieJar, readForm, type PageForm } from '../browser.ts';
import type { TourSettings } from '../addresses.ts';
import type { Verify, Walk, WalkRequest } from '../walk.ts';

const [AUTHENTICATION_FAILED, INVALID_REQUEST] = [1, 7];
/** An address of the development application; nobody listens there. */
const RETURN_URL = 'http://127.0.0.1:4200/signed-in';

/** As much of a browser as a sign-in needs: it keeps cookies; redirects are steps of the walk. */
class Browser {
  readonly #walk: Walk;
  readonly #cookies = new CookieJar();

  constructor(walk: Walk) {
    this.#walk = walk;
  }

  async step(title: string, request: WalkRequest, verify: Verify): Promise<WalkResponse> {
    const headers = this.#cookies.headersFor(request.url);
    const response = await this.#walk.step(title, { ...request, headers }, verify);
    this.#cookies.take(request.url, response.headers);
    return response;
  }
}

/** Carl signs in at the identity provider, and its response gives his browser a token. */
export async function singleSignOnChapter(walk: Walk, settings: TourSettings): Promise<void> {
  walk.chapter('Single sign-on');
  const browser = new Browser(walk);
  const authorizationUrl = await initiate(browser, settings);
  const callback = await signIn(browser, settings, authorizationUrl);
  const post: WalkRequest = {
    method: 'POST',
    url: callback.action,
    body: new URLSearchParams(callback.hidden),
  };
  await browser.step('Carl’s browser posts the provider’s form to the auth service', post, (response) => {
    const claims = readClaims(grantedTokens(response).accessToken);
    same('the claim personId', claims.personId, 1001);
    same('the claim facilities', claims.facilities?.toSorted(), [501, 502]);
    return 'Code exchanged, ID token checked: external-carl over there is person 1001 here.';
  });
  await browser.step('The form is posted again', post, (response) => {
    refusedWith(response, 400, INVALID_REQUEST);
    return 'Reason 7, InvalidRequest: a sign-in is completed once.';
  });
  await returnToApplication(walk, browser, settings);
}

/** The same for an application: its page in the browser gets a code, and it fetches the tokens itself. */
async function returnToApplication(walk: Walk, browser: Browser, settings: TourSettings): Promise<void> {
  const [codeVerifier, state] = [randomBytes(32).toString('base64url'), randomBytes(8).toString('hex')];
  const codeChallenge = createHash('sha256').update(codeVerifier).digest('base64url');
  const parameters = { applicationKey: 'demo-backend', returnUrl: RETURN_URL, codeChallenge, state };
  const authorizationUrl = await initiate(
    browser,
    settings,
    `?${new URLSearchParams(parameters).toString()}`,
  );
  const again = { method: 'GET', url: authorizationUrl } as const;
  const known = await browser.step('The provider knows Carl still', again, (response) => {
    same('the status', response.status, 200);
    return 'No password is asked for: the form with the code comes at once.';
  });
  const { action, hidden } = readForm(known.text, authorizationUrl);
  const callback: WalkRequest = { method: 'POST', url: action, body: new URLSearchParams(hidden) };
  const back = await browser.step(
    'His browser posts it, and goes back to the application',
    callback,
    (response) => {
      same('the status', response.status, 303);
      const location = new URL(locationOf(response, action));
      same('where to', location.origin + location.pathname, RETURN_URL);
      same('the state', location.searchParams.get('state'), state);
      return 'To one of the addresses that the application has registered, with a code for 60 seconds.';
    },
  );
  const code = new URL(locationOf(back, action)).searchParams.get('code');
  await exchangeCode(walk, settings, { applicationKey: 'demo-backend', code, codeVerifier });
}

async function exchangeCode(walk: Walk, settings: TourSettings, body: object): Promise<void> {
  const url = `${settings.auth}/auth/token/code`;
  const exchange: WalkRequest = { method: 'POST', url, body };
  await walk.step('The application exchanges the code', exchange, (response) => {
    same('the claim personId', readClaims(grantedTokens(response).accessToken).personId, 1001);
    return 'Only with the verifier of its challenge: whoever overhears the code can do nothing with it.';
  });
  await walk.step('The code is sent again', exchange, (response) => {
    refusedWith(response, 401, AUTHENTICATION_FAILED);
    return 'Reason 1, AuthenticationFailed: a code works once.';
  });
}

async function initiate(browser: Browser, settings: TourSettings, query = ''): Promise<string> {
  const request = { method: 'GET', url: `${settings.auth}/auth/token/sso/initiate${query}` } as const;
  const response = await browser.step('Carl wants to sign in without a password of ours', request, (sent) => {
    same('the status', sent.status, 302);
    const url = new URL(locationOf(sent, request.url));
    same('where the browser is sent', url.origin, new URL(settings.identityProvider).origin);
    same('response_type', url.searchParams.get('response_type'), 'code');
    same('response_mode', url.searchParams.get('response_mode'), 'form_post');
    same('code_challenge_method', url.searchParams.get('code_challenge_method'), 'S256');
    return 'Off to the identity provider, with state, nonce and PKCE; a cookie ties the sign-in to this browser.';
  });
  return locationOf(response, request.url);
}

/** @returns the form that the provider has the browser post */
async function signIn(browser: Browser, settings: TourSettings, authorizationUrl: string): Promise<PageForm> {
  const begin = { method: 'GET', url: authorizationUrl } as const;
  const begun = await browser.step(
    'The identity provider takes him in',
    begin,
    redirects('Not signed in yet.'),
  );
  const page = { method: 'GET', url: locationOf(begun, begin.url) } as const;
  const shown = await browser.step('It shows its sign-in form', page, (response) => {
    same('the status', response.status, 200);
    return `A form for ${new URL(readForm(response.text, page.url).action).pathname.replace(/\/[^/]{15,}\//, '/…/')}.`;
  });
  const login = {
    method: 'POST',
    url: readForm(shown.text, page.url).action,
    body: new URLSearchParams({ login: 'carl.customer', password: settings.password }),
  } as const;
  const known = redirects('The provider knows him now; only the provider saw this password.');
  const signedIn = await browser.step('Carl fills it in', login, known);
  const resume = { method: 'GET', url: locationOf(signedIn, login.url) } as const;
  const done = await browser.step('The provider takes up where it was', resume, (response) => {
    same('the status', response.status, 200);
    const { action, hidden } = readForm(response.text, resume.url);
    same('where its form goes', new URL(action).pathname, '/auth/token/openId');
    same('its fields', Object.keys(hidden).toSorted(), ['code', 'iss', 'state']);
    return 'A form with a code, for the browser to post (form_post): the code is in no address.';
  });
  return readForm(done.text, resume.url);
}

function redirects(explanation: string): Verify {
  return (response) => {
    same('the status', response.status, 303);
    return explanation;
  };
}

/** @throws {Difference} if the response is no redirect */
function locationOf(response: WalkResponse, requestUrl: string): string {
  const location = response.headers.get('location');
  if (location === null) throw new Difference('the Location header', 'an address', 'none');
  return new URL(location, requestUrl).href;
}
