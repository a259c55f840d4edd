import { httpRevocationSource, RevocationListError } from './http-revocation-source';
import type { HttpRevocationSourceOptions } from './http-revocation-source';
import { StaleRevocationPosition } from './revocation-index';
import type { Revocation } from './revocation-index';

const SINCE = new Date('2026-03-01T12:00:00.000Z');
const entry = (identifier: string): Revocation => ({
  domain: 'jti',
  identifier,
  revocationDate: '2026-03-01T12:00:01.123456+00:00',
});

async function readAll(options: Partial<HttpRevocationSourceOptions>): Promise<Revocation[]> {
  const source = httpRevocationSource({
    authServiceUrl: 'http://auth.test',
    bearerToken: () => Promise.resolve('service-token'),
    ...options,
  });
  const all: Revocation[] = [];
  const changes = source.changesSince(SINCE);
  for await (const page of Symbol.asyncIterator in changes ? changes : [changes]) all.push(...page);
  return all;
}

/** Returns a `fetch` that returns the given responses in turn, and the requests it received. */
function fetchReturning(...responses: Response[]): {
  fetch: typeof globalThis.fetch;
  requests: [URL, RequestInit][];
} {
  const requests: [URL, RequestInit][] = [];
  const fetch = (address: URL, init: RequestInit): Promise<Response> => {
    requests.push([address, init]);
    return Promise.resolve(responses.shift() ?? Response.json([]));
  };
  return { fetch: fetch as unknown as typeof globalThis.fetch, requests };
}

describe('httpRevocationSource', () => {
  it('requests revocations after the date, with a limit and its bearer token', async () => {
    const { fetch, requests } = fetchReturning(Response.json([entry('a')]));
    expect(await readAll({ fetch, pageSize: 500 })).toEqual([entry('a')]);
    const [address, init] = requests[0] as [URL, RequestInit];
    expect(address.href).toBe(
      'http://auth.test/auth/revocations?minDate=2026-03-01T12%3A00%3A00.000Z&domains=all&limit=500',
    );
    expect(init.headers).toMatchObject({ authorization: 'Bearer service-token' });
    expect(init.redirect).toBe('error');
  });

  it.each(['http://auth.test/root', 'http://auth.test/root/'])(
    'keeps the path prefix of %s',
    async (authServiceUrl) => {
      const { fetch, requests } = fetchReturning();
      await readAll({ fetch, authServiceUrl });
      expect(requests[0]?.[0].pathname).toBe('/root/auth/revocations');
    },
  );

  it('follows the link to the next page until a response has none', async () => {
    const link = '<https://docs.test/>; rel="help", </auth/revocations?limit=1&cursor=c2>; rel="next"';
    const { fetch, requests } = fetchReturning(
      Response.json([entry('a')], { headers: { link } }),
      Response.json([entry('b')]),
    );
    expect(await readAll({ fetch })).toEqual([entry('a'), entry('b')]);
    expect(requests[1]?.[0].href).toBe('http://auth.test/auth/revocations?limit=1&cursor=c2');
  });

  it('reports the time of the clock that dates revocations, if the response has it', async () => {
    const headers = { 'revocations-as-of': '2026-03-01T12:00:02.000Z' };
    const { fetch } = fetchReturning(Response.json([entry('a')], { headers }), Response.json([]));
    const reportedTimes: Date[] = [];
    const source = httpRevocationSource({
      authServiceUrl: 'http://auth.test',
      bearerToken: () => Promise.resolve('service-token'),
      fetch,
    });
    for (let poll = 0; poll < 2; poll += 1) {
      const changes = source.changesSince(SINCE, undefined, (now) => reportedTimes.push(now));
      for await (const page of Symbol.asyncIterator in changes ? changes : [changes])
        expect(page.length).toBeLessThan(2);
    }
    expect(reportedTimes).toEqual([new Date('2026-03-01T12:00:02.000Z')]);
  });

  it('reads single pages, from a date or from the position of the next page', async () => {
    const { fetch, requests } = fetchReturning(
      Response.json([entry('a')], { headers: { link: '</auth/revocations?cursor=c2>; rel="next"' } }),
      Response.json([entry('b')]),
      Response.json({}, { status: 400 }),
    );
    const source = httpRevocationSource({
      authServiceUrl: 'http://auth.test',
      bearerToken: () => Promise.resolve('service-token'),
      fetch,
    });
    const first = await source.readPage!(SINCE);
    expect(first.revocations).toEqual([entry('a')]);
    const last = await source.readPage!(first.next!);
    expect([last.revocations, last.next]).toEqual([[entry('b')], null]);
    expect(requests[1]?.[0].href).toBe('http://auth.test/auth/revocations?cursor=c2');
    await expect(source.readPage!(first.next!)).rejects.toBeInstanceOf(StaleRevocationPosition);
  });

  it('does not send its token to another server', async () => {
    const link = '<http://evil.test/auth/revocations>; rel=next';
    const { fetch, requests } = fetchReturning(Response.json([entry('a')], { headers: { link } }));
    await expect(readAll({ fetch })).rejects.toBeInstanceOf(RevocationListError);
    expect(requests).toHaveLength(1);
  });

  it('reports a refused token, so that a new one is fetched', async () => {
    const refused: string[] = [];
    const { fetch } = fetchReturning(new Response(null, { status: 401 }));
    const reading = readAll({ fetch, onTokenRefused: (token) => refused.push(token) });
    await expect(reading).rejects.toThrow('responded 401');
    expect(refused).toEqual(['service-token']);
  });

  it.each([
    ['an error', new Response('no', { status: 500 })],
    ['a body that is not a list', Response.json({ revocations: [] })],
    ['an entry of an unknown domain', Response.json([{ ...entry('a'), domain: 'tenant' }])],
    ['an entry without a valid date', Response.json([{ ...entry('a'), revocationDate: 'yesterday' }])],
  ])('fails on %s, because a partial list would admit revoked tokens', async (_title, response) => {
    await expect(readAll({ fetch: fetchReturning(response).fetch })).rejects.toBeInstanceOf(
      RevocationListError,
    );
  });
});
