/**
 * Measures checks against a million revocations in memory and against none, and the memory of the million.
 */
import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { RevocationFeed, type RevocableToken, type Revocation } from '@platform/access-tokens';
import { callsPerSecond, serveMeasurements } from './serve-measurements';

const REVOCATIONS = 1_000_000;
const PAGE = 10_000;
const TOKENS = 1_000;

const now = new Date();
const tokens: RevocableToken[] = Array.from({ length: TOKENS }, (_none, index) => ({
  jti: randomUUID(),
  iat: Math.floor(now.getTime() / 1_000),
  personId: index + 1,
  userId: null,
}));

/** Pages of revocations, half of tokens and half of persons. None of them is checked for. */
function* revocations(count: number): Generator<Revocation[]> {
  const revocationDate = now.toISOString();
  for (let made = 0; made < count; made += PAGE) {
    yield Array.from({ length: PAGE }, (_none, index) =>
      index % 2 === 0
        ? { domain: 'jti', identifier: randomUUID(), revocationDate }
        : { domain: 'svc-personid', identifier: String(10_000_000 + made + index), revocationDate },
    );
  }
}

async function load(count: number): Promise<RevocationFeed> {
  let pages: Iterable<Revocation[]> | null = revocations(count);
  // The first call returns all pages, later calls return none.
  const changesSince = (): AsyncIterable<Revocation[]> => {
    const remaining = pages ?? [];
    pages = null;
    return Readable.from(remaining);
  };
  const feed = new RevocationFeed({ source: { changesSince }, maxAgeMs: 86_400_000 });
  await feed.refresh();
  if (feed.size !== count) throw new Error(`${feed.size} revocations are loaded, not ${count}`);
  return feed;
}

/**
 * Returns the used bytes of the heap and of external buffers after garbage collection. Collects twice,
 * because a buffer counts until the collection after the one that frees it.
 */
function usedBytes(): number {
  if (global.gc === undefined) throw new Error('start with --expose-gc');
  global.gc();
  global.gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function main(): Promise<void> {
  const none = await load(0);
  const before = usedBytes();
  const million = await load(REVOCATIONS);
  const usedMegabytes = (usedBytes() - before) / 1e6;
  const check = (feed: RevocationFeed) => (seconds: number) =>
    callsPerSecond(seconds, (count) => {
      if (feed.isRevoked(tokens[count % TOKENS]!)) throw new Error('a valid token counts as revoked');
    }).then((perSecond) => 1e9 / perSecond);
  serveMeasurements({
    none: check(none),
    million: check(million),
    tables: () => Promise.resolve(million.byteLength / 1e6),
    'whole process': () => Promise.resolve(usedMegabytes),
  });
}

void main();
