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

/** Answers the given responses in turn and keeps what was asked. */
function answering(...answers: Response[]): { fetch: typeof globalThis.fetch; asked: [URL, RequestInit][] } {
  const asked: [URL, RequestInit][] = [];
  const fetch = (address: URL, init: RequestInit): Promise<Response> => {
    asked.push([address, init]);
    return Promise.resolve(answers.shift() ?? Response.json([]));
  };
  return { fetch: fetch as unknown as typeof globalThis.fetch, asked };
}

describe('httpRevocationSource', () => {
  it('asks for what is newer, with a limit and its bearer token', async () => {
    const { fetch, asked } = answering(Response.json([entry('a')]));
    expect(await readAll({ fetch, pageSize: 500 })).toEqual([entry('a')]);
    const [address, init] = asked[0] as [URL, RequestInit];
    expect(address.href).toBe(
      'http://auth.test/auth/revocations?minDate=2026-03-01T12%3A00%3A00.000Z&domains=all&limit=500',
    );
    expect(init.headers).toMatchObject({ authorization: 'Bearer service-token' });
    expect(init.redirect).toBe('error');
  });

  it.each(['http://auth.test/root', 'http://auth.test/root/'])(
    'keeps the path of %s',
    async (authServiceUrl) => {
      const { fetch, asked } = answering();
      await readAll({ fetch, authServiceUrl });
      expect(asked[0]?.[0].pathname).toBe('/root/auth/revocations');
    },
  );

  it('follows the link to the next page until there is none', async () => {
    const link = '<https://docs.test/>; rel="help", </auth/revocations?limit=1&cursor=c2>; rel="next"';
    const { fetch, asked } = answering(
      Response.json([entry('a')], { headers: { link } }),
      Response.json([entry('b')]),
    );
    expect(await readAll({ fetch })).toEqual([entry('a'), entry('b')]);
    expect(asked[1]?.[0].href).toBe('http://auth.test/auth/revocations?limit=1&cursor=c2');
  });

  it('tells the time of the clock that dates revocations, if it is there', async () => {
    const headers = { 'revocations-as-of': '2026-03-01T12:00:02.000Z' };
    const { fetch } = answering(Response.json([entry('a')], { headers }), Response.json([]));
    const told: Date[] = [];
    const source = httpRevocationSource({
      authServiceUrl: 'http://auth.test',
      bearerToken: () => Promise.resolve('service-token'),
      fetch,
    });
    for (let poll = 0; poll < 2; poll += 1) {
      const changes = source.changesSince(SINCE, undefined, (present) => told.push(present));
      for await (const page of Symbol.asyncIterator in changes ? changes : [changes])
        expect(page.length).toBeLessThan(2);
    }
    expect(told).toEqual([new Date('2026-03-01T12:00:02.000Z')]);
  });

  it('reads single pages, from a date or from where another one ended', async () => {
    const { fetch, asked } = answering(
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
    expect(asked[1]?.[0].href).toBe('http://auth.test/auth/revocations?cursor=c2');
    await expect(source.readPage!(first.next!)).rejects.toBeInstanceOf(StaleRevocationPosition);
  });

  it('takes its token to no other server', async () => {
    const link = '<http://evil.test/auth/revocations>; rel=next';
    const { fetch, asked } = answering(Response.json([entry('a')], { headers: { link } }));
    await expect(readAll({ fetch })).rejects.toBeInstanceOf(RevocationListError);
    expect(asked).toHaveLength(1);
  });

  it('reports a token that was refused, so that another is fetched', async () => {
    const refused: string[] = [];
    const { fetch } = answering(new Response(null, { status: 401 }));
    const reading = readAll({ fetch, onTokenRefused: (token) => refused.push(token) });
    await expect(reading).rejects.toThrow('answered 401');
    expect(refused).toEqual(['service-token']);
  });

  it.each([
    ['an error', new Response('no', { status: 500 })],
    ['no list', Response.json({ revocations: [] })],
    ['an entry of a domain it does not know', Response.json([{ ...entry('a'), domain: 'tenant' }])],
    ['an entry without a date', Response.json([{ ...entry('a'), revocationDate: 'yesterday' }])],
  ])('fails on %s: half a list would let revoked tokens through', async (_title, answer) => {
    await expect(readAll({ fetch: answering(answer).fetch })).rejects.toBeInstanceOf(RevocationListError);
  });
});
