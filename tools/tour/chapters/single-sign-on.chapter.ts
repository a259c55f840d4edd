import { createHash, randomBytes } from 'node:crypto';
import { CookieJar, type PageForm, readForm } from '../browser.ts';
import {
  Difference,
  grantedTokens,
  readClaims,
  refusedWith,
  same,
  type WalkResponse,
} from '../expectations.ts';
import type { Verify, Walk, WalkRequest } from '../walk.ts';

const [AUTHENTICATION_FAILED, INVALID_REQUEST] = [1, 7];
/** A registered return URL of the development application; no server listens there. */
const RETURN_URL = 'http://127.0.0.1:4200/signed-in';

/** A minimal browser for sign-in: it keeps cookies; redirects are steps of the walk. */
class Browser {
  readonly walk: Walk;
  readonly #cookies = new CookieJar();

  constructor(walk: Walk) {
    this.walk = walk;
  }

  async step(title: string, request: WalkRequest, verify: Verify): Promise<WalkResponse> {
    const headers = this.#cookies.headersFor(request.url);
    const response = await this.walk.step(title, { ...request, headers }, verify);
    this.#cookies.take(request.url, response.headers);
    return response;
  }
}

/** Carl signs in at the identity provider, and his browser gets a token. */
export async function singleSignOnChapter(walk: Walk): Promise<void> {
  walk.chapter('Single sign-on');
  const browser = new Browser(walk);
  const post = await signIn(browser, await initiate(browser));
  await browser.step('Carl’s browser posts the provider’s form to the auth service', post, (response) => {
    const claims = readClaims(grantedTokens(response).accessToken);
    same('the claim personId', claims.personId, 1001);
    same('the claim facilities', claims.facilities?.toSorted(), [501, 502]);
    return 'Code exchanged, ID token checked: external-carl over there is person 1001 here.';
  });
  await browser.step('The form is posted again', { ...post, status: 400 }, (response) => {
    refusedWith(response, INVALID_REQUEST);
    return 'Reason 7, InvalidRequest: a sign-in is completed once.';
  });
  await returnToApplication(browser);
}

/**
 * The same for an application: its page in the browser gets a code, which the application exchanges for the
 * tokens.
 */
async function returnToApplication(browser: Browser): Promise<void> {
  const [codeVerifier, state] = [randomBytes(32).toString('base64url'), randomBytes(8).toString('hex')];
  const codeChallenge = createHash('sha256').update(codeVerifier).digest('base64url');
  const parameters = { applicationKey: 'demo-backend', returnUrl: RETURN_URL, codeChallenge, state };
  const url = await initiate(browser, `?${new URLSearchParams(parameters).toString()}`);
  const noPassword = 'No password is asked for: the form with the code comes at once.';
  const known = await browser.step('The provider still knows Carl', { url }, noPassword);
  const callback = { ...postOf(readForm(known.text, url)), status: 303 };
  const title = 'His browser posts it, and goes back to the application';
  const back = await browser.step(title, callback, (response) => {
    const location = new URL(locationOf(response, callback.url));
    same('where to', location.origin + location.pathname, RETURN_URL);
    same('the state', location.searchParams.get('state'), state);
    return 'To one of the addresses that the application has registered, with a code for 60 seconds.';
  });
  const code = new URL(locationOf(back, callback.url)).searchParams.get('code');
  const exchange: WalkRequest = {
    method: 'POST',
    url: `${browser.walk.settings.auth}/auth/token/code`,
    body: { applicationKey: 'demo-backend', code, codeVerifier },
  };
  await browser.walk.step('The application exchanges the code', exchange, (response) => {
    same('the claim personId', readClaims(grantedTokens(response).accessToken).personId, 1001);
    return 'Only with the verifier of its challenge: whoever overhears the code can do nothing with it.';
  });
  await browser.walk.step('The code is sent again', { ...exchange, status: 401 }, (response) => {
    refusedWith(response, AUTHENTICATION_FAILED);
    return 'Reason 1, AuthenticationFailed: a code works once.';
  });
}

/** Starts a sign-in. @returns the URL to which the browser is redirected */
async function initiate(browser: Browser, query = ''): Promise<string> {
  const { auth, identityProvider } = browser.walk.settings;
  const request = { url: `${auth}/auth/token/sso/initiate${query}`, status: 302 };
  const response = await browser.step('Carl wants to sign in without a password of ours', request, (sent) => {
    const url = new URL(locationOf(sent, request.url));
    same('where the browser is sent', url.origin, new URL(identityProvider).origin);
    same('response_type', url.searchParams.get('response_type'), 'code');
    same('response_mode', url.searchParams.get('response_mode'), 'form_post');
    same('code_challenge_method', url.searchParams.get('code_challenge_method'), 'S256');
    return 'Off to the identity provider, with state, nonce and PKCE; a cookie ties the sign-in to this browser.';
  });
  return locationOf(response, request.url);
}

/** Signs Carl in at the provider. @returns the request in which the browser posts the provider's form */
async function signIn(browser: Browser, authorizationUrl: string): Promise<WalkRequest> {
  const { password } = browser.walk.settings;
  const begin = { url: authorizationUrl, status: 303 };
  const begun = await browser.step('The identity provider starts a sign-in', begin, 'Not signed in yet.');
  const page = { url: locationOf(begun, begin.url) };
  const shown = await browser.step('It shows its sign-in form', page, (response) => {
    const { pathname } = new URL(readForm(response.text, page.url).action);
    return `A form for ${pathname.replace(/\/[^/]{15,}\//, '/…/')}.`;
  });
  const { action } = readForm(shown.text, page.url);
  const login = { ...postOf({ action, hidden: { login: 'carl.customer', password } }), status: 303 };
  const known = 'The provider knows him now; only the provider saw this password.';
  const signedIn = await browser.step('Carl fills it in', login, known);
  const resume = { url: locationOf(signedIn, login.url) };
  const done = await browser.step('The provider resumes the sign-in', resume, (response) => {
    const form = readForm(response.text, resume.url);
    same('where its form goes', new URL(form.action).pathname, '/auth/token/openId');
    same('its fields', Object.keys(form.hidden).toSorted(), ['code', 'iss', 'state']);
    return 'A form with a code, for the browser to post (form_post): the code is in no address.';
  });
  return postOf(readForm(done.text, resume.url));
}

function postOf({ action, hidden }: PageForm): WalkRequest {
  return { method: 'POST', url: action, body: new URLSearchParams(hidden) };
}

/** @throws {Difference} if the response is no redirect */
function locationOf(response: WalkResponse, requestUrl: string): string {
  const location = response.headers.get('location');
  if (location === null) throw new Difference('the Location header', 'an address', 'none');
  return new URL(location, requestUrl).href;
}
