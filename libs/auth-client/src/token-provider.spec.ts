import { inspect } from 'node:util';
import { TokenProvider, TokenRequestError, signTrustRequest } from './index';
import type { TokenProviderOptions, TrustRequest } from './index';

const SECRET = 'a-shared-secret-that-must-never-show';
const NOW = new Date('2026-03-01T12:00:00.000Z');
const MINUTE_MS = 60_000;

let serial = 0;

/** Issues a token with a unique `jti`, by default valid for an hour. */
function issue(lifetimeSeconds = 3_600): string {
  serial += 1;
  const payload = { iat: 1_000, exp: 1_000 + lifetimeSeconds, jti: serial };
  return `e30.${Buffer.from(JSON.stringify(payload)).toString('base64url')}.sig`;
}

const granted = (accessToken = issue()): Response =>
  Response.json({
    accessToken,
    refreshToken: null,
    rejectionReason: 0,
    rejectionDetails: null,
    wasSuccessful: true,
  });
const refused = (status: number, rejectionReason: number): Response =>
  Response.json({ accessToken: null, rejectionReason, wasSuccessful: false }, { status });

type Respond = () => Response | Promise<Response>;

/** Creates a provider with a clock and an auth-service that the test controls. */
function testProvider(options: Partial<TokenProviderOptions> = {}) {
  const requests: { url: string; init: RequestInit; body: TrustRequest }[] = [];
  const auth = { respond: (() => granted()) as Respond, nowMs: 0 };
  const fetch = async (url: URL, init: RequestInit): Promise<Response> => {
    requests.push({ url: url.href, init, body: JSON.parse(init.body as string) as TrustRequest });
    return auth.respond();
  };
  const provider = new TokenProvider({
    authServiceUrl: 'http://auth.test',
    applicationKey: 'demo-backend',
    sharedSecret: SECRET,
    persona: 1,
    userName: 'ivy.internal',
    fetch: fetch as unknown as typeof globalThis.fetch,
    now: () => NOW,
    monotonicMs: () => auth.nowMs,
    ...options,
  });
  return { provider, requests, auth };
}

describe('TokenProvider', () => {
  it('sends a request signed with the current time', async () => {
    const { provider, requests } = testProvider();
    await provider.getToken();
    const { url, init, body } = requests[0] as (typeof requests)[0];
    expect([url, init.method]).toEqual(['http://auth.test/auth/token/trust', 'POST']);
    const { authenticationCode, ...request } = body;
    expect(request).toEqual({
      requestTimestampUtc: NOW.toISOString(),
      applicationKey: 'demo-backend',
      persona: 1,
      userName: 'ivy.internal',
    });
    expect(authenticationCode).toBe(signTrustRequest(request, SECRET));
  });

  it('returns one token to all callers, and renews it in the background five minutes before expiry', async () => {
    const { provider, requests, auth } = testProvider();
    const first = await provider.getToken();
    auth.nowMs = 55 * MINUTE_MS - 1;
    expect(await provider.getToken()).toBe(first);
    expect(requests).toHaveLength(1);
    auth.nowMs = 55 * MINUTE_MS;
    expect(await provider.getToken()).toBe(first);
    expect(requests).toHaveLength(2);
    await new Promise(setImmediate);
    expect(await provider.getToken()).not.toBe(first);
    expect(requests).toHaveLength(2);
  });

  it('renews a short-lived token in the last fifth of its lifetime', async () => {
    const { provider, requests, auth } = testProvider();
    auth.respond = () => granted(issue(100));
    await provider.getToken();
    auth.nowMs = 79_999;
    await provider.getToken();
    expect(requests).toHaveLength(1);
    auth.nowMs = 80_000;
    await provider.getToken();
    expect(requests).toHaveLength(2);
  });

  it('never returns an expired token', async () => {
    const { provider, auth } = testProvider();
    const first = await provider.getToken();
    auth.nowMs = 60 * MINUTE_MS;
    expect(await provider.getToken()).not.toBe(first);
  });

  it('sends one request for all waiting callers', async () => {
    const { provider, requests } = testProvider();
    const tokens = await Promise.all(Array.from({ length: 50 }, () => provider.getToken()));
    expect(new Set(tokens).size).toBe(1);
    expect(requests).toHaveLength(1);
  });

  it('requests a new token after invalidate, once for repeated calls with the same token', async () => {
    const { provider, requests } = testProvider();
    const first = await provider.getToken();
    provider.invalidate(first);
    const second = await provider.getToken();
    provider.invalidate(first);
    expect(await provider.getToken()).toBe(second);
    expect(requests).toHaveLength(2);
  });

  it('returns the old token until it expires while renewal fails', async () => {
    const { provider, auth } = testProvider();
    const first = await provider.getToken();
    auth.respond = () => Promise.reject(new TypeError('fetch failed'));
    auth.nowMs = 59 * MINUTE_MS;
    expect(await provider.getToken()).toBe(first);
    await new Promise(setImmediate);
    expect(await provider.getToken()).toBe(first);
    auth.nowMs = 60 * MINUTE_MS;
    await expect(provider.getToken()).rejects.toMatchObject({ failure: 'unavailable' });
  });

  it('gives callers within the backoff the last error without a request', async () => {
    const { provider, requests, auth } = testProvider();
    auth.respond = () => new Response('busy', { status: 503 });
    await Promise.allSettled(Array.from({ length: 50 }, () => provider.getToken()));
    await expect(provider.getToken()).rejects.toMatchObject({ failure: 'unavailable', status: 503 });
    expect(requests).toHaveLength(1);
    for (let count = 2; count < 20; count += 1) {
      auth.nowMs += 5_000;
      await expect(provider.getToken()).rejects.toBeInstanceOf(TokenRequestError);
      expect(requests).toHaveLength(count);
      await expect(provider.getToken()).rejects.toBeInstanceOf(TokenRequestError);
      expect(requests).toHaveLength(count);
    }
    auth.respond = () => granted();
    auth.nowMs += 5_000;
    await expect(provider.getToken()).resolves.toBeDefined();
  });

  it.each([
    [401, 1],
    [422, 8],
    [400, 7],
  ])('reports a refusal with %p and reason %p', async (status, rejectionReason) => {
    const { provider, auth } = testProvider();
    auth.respond = () => refused(status, rejectionReason);
    await expect(provider.getToken()).rejects.toMatchObject({ failure: 'rejected', status, rejectionReason });
  });

  it.each<[string, Respond]>([
    ['429', () => new Response(null, { status: 429 })],
    ['200 without JSON', () => new Response('<html>')],
    ['200 without a token', () => Response.json({ wasSuccessful: true, accessToken: null })],
    ['200 with a token without a lifetime', () => granted('e30.e30.sig')],
    ['no response in time', () => Promise.reject(new DOMException('timed out', 'TimeoutError'))],
  ])('reports the service as unavailable on %s', async (_title, respond) => {
    const { provider, auth } = testProvider();
    auth.respond = respond;
    await expect(provider.getToken()).rejects.toMatchObject({ failure: 'unavailable' });
  });

  it("ends one caller's wait on its signal, and no other caller's", async () => {
    const { provider, auth } = testProvider();
    let resolveResponse = (_: Response): void => undefined;
    const response = new Promise<Response>((resolve) => (resolveResponse = resolve));
    auth.respond = () => response;
    const abort = new AbortController();
    const impatient = provider.getToken(abort.signal);
    const patient = provider.getToken();
    abort.abort(new Error('enough'));
    await expect(impatient).rejects.toMatchObject({ failure: 'aborted' });
    await expect(provider.getToken(abort.signal)).rejects.toMatchObject({ failure: 'aborted' });
    resolveResponse(granted());
    await expect(patient).resolves.toBeDefined();
  });

  it('shows no secret, code or token when the provider or its errors are printed', async () => {
    const { provider, requests, auth } = testProvider();
    const token = await provider.getToken();
    const printedFull = inspect(provider, { depth: 9 });
    provider.invalidate(token);
    auth.respond = () => refused(401, 1);
    const error: unknown = await provider.getToken().catch((refusal: unknown) => refusal);
    const printed = `${printedFull}${JSON.stringify(provider)}${inspect(error, { depth: 9 })}`;
    for (const hidden of [SECRET, token, ...requests.map(({ body }) => body.authenticationCode)]) {
      expect(printed).not.toContain(hidden);
    }
  });
});
