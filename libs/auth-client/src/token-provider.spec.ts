import { inspect } from 'node:util';
import { TokenProvider, TokenRequestError, signTrustRequest } from './index';
import type { TokenProviderOptions, TrustRequest } from './index';

const SECRET = 'a-shared-secret-that-must-never-show';
const NOW = new Date('2026-03-01T12:00:00.000Z');
const MINUTE_MS = 60_000;

let serial = 0;

/** A token that lives an hour, told apart by its `jti`. */
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

type Answer = () => Response | Promise<Response>;

/** A provider whose time and auth-service the test plays. */
function testProvider(options: Partial<TokenProviderOptions> = {}) {
  const asked: { url: string; init: RequestInit; body: TrustRequest }[] = [];
  const play = { answer: (() => granted()) as Answer, nowMs: 0 };
  const fetch = async (url: URL, init: RequestInit): Promise<Response> => {
    asked.push({ url: url.href, init, body: JSON.parse(init.body as string) as TrustRequest });
    return play.answer();
  };
  const provider = new TokenProvider({
    authServiceUrl: 'http://auth.test',
    applicationKey: 'demo-backend',
    sharedSecret: SECRET,
    persona: 1,
    userName: 'ivy.internal',
    fetch: fetch as unknown as typeof globalThis.fetch,
    now: () => NOW,
    monotonicMs: () => play.nowMs,
    ...options,
  });
  return { provider, asked, play };
}

describe('TokenProvider', () => {
  it('asks with a signed request of this moment', async () => {
    const { provider, asked } = testProvider();
    await provider.getToken();
    const { url, init, body } = asked[0] as (typeof asked)[0];
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

  it('gives one token to everybody until it is nearly over, then renews it behind their backs', async () => {
    const { provider, asked, play } = testProvider();
    const first = await provider.getToken();
    play.nowMs = 55 * MINUTE_MS - 1;
    expect(await provider.getToken()).toBe(first);
    expect(asked).toHaveLength(1);
    play.nowMs = 55 * MINUTE_MS;
    expect(await provider.getToken()).toBe(first);
    expect(asked).toHaveLength(2);
    await new Promise(setImmediate);
    expect(await provider.getToken()).not.toBe(first);
    expect(asked).toHaveLength(2);
  });

  it('renews a short-lived token in the last fifth of its life', async () => {
    const { provider, asked, play } = testProvider();
    play.answer = () => granted(issue(100));
    await provider.getToken();
    play.nowMs = 79_999;
    await provider.getToken();
    expect(asked).toHaveLength(1);
    play.nowMs = 80_000;
    await provider.getToken();
    expect(asked).toHaveLength(2);
  });

  it('never gives out a token past its end', async () => {
    const { provider, play } = testProvider();
    const first = await provider.getToken();
    play.nowMs = 60 * MINUTE_MS;
    expect(await provider.getToken()).not.toBe(first);
  });

  it('sends one request for all who wait', async () => {
    const { provider, asked } = testProvider();
    const tokens = await Promise.all(Array.from({ length: 50 }, () => provider.getToken()));
    expect(new Set(tokens).size).toBe(1);
    expect(asked).toHaveLength(1);
  });

  it('brings another token after one was refused, once for many reports', async () => {
    const { provider, asked } = testProvider();
    const first = await provider.getToken();
    provider.invalidate(first);
    const second = await provider.getToken();
    provider.invalidate(first);
    expect(await provider.getToken()).toBe(second);
    expect(asked).toHaveLength(2);
  });

  it('serves the old token while renewing fails, until its end', async () => {
    const { provider, play } = testProvider();
    const first = await provider.getToken();
    play.answer = () => Promise.reject(new TypeError('fetch failed'));
    play.nowMs = 59 * MINUTE_MS;
    expect(await provider.getToken()).toBe(first);
    await new Promise(setImmediate);
    expect(await provider.getToken()).toBe(first);
    play.nowMs = 60 * MINUTE_MS;
    await expect(provider.getToken()).rejects.toMatchObject({ failure: 'unavailable' });
  });

  it('does not stampede: callers within the backoff get the last error without a request', async () => {
    const { provider, asked, play } = testProvider();
    play.answer = () => new Response('busy', { status: 503 });
    await Promise.allSettled(Array.from({ length: 50 }, () => provider.getToken()));
    await expect(provider.getToken()).rejects.toMatchObject({ failure: 'unavailable', status: 503 });
    expect(asked).toHaveLength(1);
    for (let count = 2; count < 20; count += 1) {
      play.nowMs += 5_000;
      await expect(provider.getToken()).rejects.toBeInstanceOf(TokenRequestError);
      expect(asked).toHaveLength(count);
      await expect(provider.getToken()).rejects.toBeInstanceOf(TokenRequestError);
      expect(asked).toHaveLength(count);
    }
    play.answer = () => granted();
    play.nowMs += 5_000;
    await expect(provider.getToken()).resolves.toBeDefined();
  });

  it.each([
    [401, 1],
    [422, 8],
    [400, 7],
  ])('reports a refusal with %p and reason %p', async (status, rejectionReason) => {
    const { provider, play } = testProvider();
    play.answer = () => refused(status, rejectionReason);
    await expect(provider.getToken()).rejects.toMatchObject({ failure: 'rejected', status, rejectionReason });
  });

  it.each<[string, Answer]>([
    ['429', () => new Response(null, { status: 429 })],
    ['200 without JSON', () => new Response('<html>')],
    ['200 without a token', () => Response.json({ wasSuccessful: true, accessToken: null })],
    ['200 with a token without a lifetime', () => granted('e30.e30.sig')],
    ['nothing in time', () => Promise.reject(new DOMException('timed out', 'TimeoutError'))],
  ])('calls the service unavailable on %s', async (_title, answer) => {
    const { provider, play } = testProvider();
    play.answer = answer;
    await expect(provider.getToken()).rejects.toMatchObject({ failure: 'unavailable' });
  });

  it("ends one caller's wait on its signal, and nobody else's", async () => {
    const { provider, play } = testProvider();
    let answer = (_: Response): void => undefined;
    const answered = new Promise<Response>((resolve) => (answer = resolve));
    play.answer = () => answered;
    const abort = new AbortController();
    const impatient = provider.getToken(abort.signal);
    const patient = provider.getToken();
    abort.abort(new Error('enough'));
    await expect(impatient).rejects.toMatchObject({ failure: 'aborted' });
    await expect(provider.getToken(abort.signal)).rejects.toMatchObject({ failure: 'aborted' });
    answer(granted());
    await expect(patient).resolves.toBeDefined();
  });

  it('shows no secret, code or token when it or its errors are printed', async () => {
    const { provider, asked, play } = testProvider();
    const token = await provider.getToken();
    const printedFull = inspect(provider, { depth: 9 });
    provider.invalidate(token);
    play.answer = () => refused(401, 1);
    const error: unknown = await provider.getToken().catch((refusal: unknown) => refusal);
    const printed = `${printedFull}${JSON.stringify(provider)}${inspect(error, { depth: 9 })}`;
    for (const hidden of [SECRET, token, ...asked.map(({ body }) => body.authenticationCode)]) {
      expect(printed).not.toContain(hidden);
    }
  });
});
