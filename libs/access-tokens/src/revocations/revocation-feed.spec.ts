import { ManualClock } from '@platform/time';
import { TokenVerificationUnavailableError } from '../token/access-token-error';
import { RevocationFeed } from './revocation-feed';
import type { RevocationFeedOptions } from './revocation-feed';
import { StaleRevocationPosition } from './revocation-index';
import type { Revocation, RevocationPage } from './revocation-index';

const at = (second: number): string => new Date(Date.UTC(2026, 2, 1, 12, 0, second)).toISOString();
const revoked = (identifier: string, second = 0): Revocation => ({
  domain: 'jti',
  identifier,
  revocationDate: at(second),
});
const tokenOf = (jti: string): { jti: string; iat: number } => ({ jti, iat: 0 });

/** Creates a feed over a list that the test edits. The test polls by calling `refresh`. */
function testFeed(options: Partial<RevocationFeedOptions> = {}) {
  const clock = new ManualClock('2026-03-01T12:00:00Z');
  const list: Revocation[] = [];
  const requested: Date[] = [];
  /** The time that the source reports; null if it reports none. */
  const source: { present: string | null } = { present: null };
  const outages: unknown[] = [];
  let failure: Error | null = null;
  const feed = new RevocationFeed({
    clock,
    onOutage: (error) => outages.push(error),
    source: {
      changesSince: (since, _signal, reportTime) => {
        requested.push(since);
        if (source.present !== null) reportTime?.(new Date(source.present));
        if (failure) return Promise.reject(failure);
        return Promise.resolve(list.filter(({ revocationDate }) => new Date(revocationDate) > since));
      },
    },
    ...options,
  });
  const fail = (error: Error | null): void => {
    failure = error;
  };
  return { feed, clock, list, requested, outages, fail, source };
}

describe('RevocationFeed', () => {
  it('accepts no token before the first complete load', () => {
    const { feed } = testFeed();
    expect(() => feed.isRevoked(tokenOf('a'))).toThrow(TokenVerificationUnavailableError);
    expect(() => feed.assertFresh()).toThrow(TokenVerificationUnavailableError);
  });

  it('loads everything first, then polls from the newest revocation minus the overlap', async () => {
    const { feed, list, requested } = testFeed({ overlapMs: 30_000 });
    list.push(revoked('a', 10), revoked('b', 40));
    await feed.refresh();
    list.push(revoked('late', 20), revoked('c', 50));
    await feed.refresh();
    expect(requested).toEqual([new Date(0), new Date(at(10))]);
    expect(['a', 'b', 'late', 'c', 'd'].map((jti) => feed.isRevoked(tokenOf(jti)))).toEqual([
      true,
      true,
      true,
      true,
      false,
    ]);
  });

  it('shrinks the overlap by the time since the newest revocation, so that a burst is not read on every poll', async () => {
    const { feed, clock, list, requested } = testFeed({ overlapMs: 30_000 });
    list.push(revoked('a', 40));
    await feed.refresh();
    clock.advance(20_000);
    await feed.refresh();
    clock.advance(10_000);
    await feed.refresh();
    clock.advance(600_000);
    await feed.refresh();
    // The poll never starts later than the newest revocation, because a clock that is set back may date the
    // next one only slightly later.
    expect(requested.slice(1)).toEqual([new Date(at(30)), new Date(at(40)), new Date(at(40))]);
    list.push(revoked('b', 41));
    await feed.refresh();
    await feed.refresh();
    expect(requested.at(-1)).toEqual(new Date(at(11)));
    expect(feed.isRevoked(tokenOf('b'))).toBe(true);
  });

  describe('from a source that reports its time', () => {
    it('polls from the reported time minus the overlap, however old the newest revocation is', async () => {
      const { feed, clock, requested, source } = testFeed({ overlapMs: 30_000 });
      source.present = at(40);
      await feed.refresh();
      clock.advance(600_000);
      source.present = at(640);
      await feed.refresh();
      await feed.refresh();
      expect(requested).toEqual([new Date(0), new Date(at(10)), new Date(at(610))]);
    });

    it('finds revocations dated by a clock that was set back and then ahead again', async () => {
      const { feed, clock, list, source } = testFeed({ overlapMs: 30_000 });
      const poll = (present: string): Promise<void> => {
        source.present = present;
        clock.advance(500);
        return feed.refresh();
      };
      list.push(revoked('before', 100));
      await poll(at(100));
      list.push(revoked('after', 40));
      await poll(at(41));
      list.push(revoked('later', 42));
      await poll(at(103));
      await poll(at(103));
      expect(['before', 'after', 'later'].map((jti) => feed.isRevoked(tokenOf(jti)))).toEqual([
        true,
        true,
        true,
      ]);
    });

    it('finds a revocation dated before the clock was set ahead and committed afterwards', async () => {
      const { feed, clock, list, source } = testFeed({ overlapMs: 30_000 });
      source.present = at(40);
      await feed.refresh();
      clock.advance(500);
      source.present = at(100);
      await feed.refresh();
      list.push(revoked('late', 40));
      clock.advance(25_000);
      source.present = at(125);
      await feed.refresh();
      expect(feed.isRevoked(tokenOf('late'))).toBe(true);
    });

    it('polls from the newest revocation again once the source stops reporting its time', async () => {
      const { feed, list, requested, source } = testFeed({ overlapMs: 30_000 });
      list.push(revoked('a', 40));
      source.present = at(45);
      await feed.refresh();
      source.present = null;
      await feed.refresh();
      await feed.refresh();
      expect(requested).toEqual([new Date(0), new Date(at(15)), new Date(at(10))]);
    });
  });

  it('applies a result that arrives in pages', async () => {
    async function* pages(): AsyncGenerator<Revocation[]> {
      yield [revoked('a')];
      yield await Promise.resolve([revoked('b')]);
    }
    const { feed } = testFeed({ source: { changesSince: pages } });
    await feed.refresh();
    expect(feed.isRevoked(tokenOf('a')) && feed.isRevoked(tokenOf('b'))).toBe(true);
  });

  it('is not loaded by a result whose second page fails', async () => {
    async function* pages(): AsyncGenerator<Revocation[]> {
      yield [revoked('a')];
      await Promise.reject(new Error('cut off'));
    }
    const { feed } = testFeed({ source: { changesSince: pages } });
    await expect(feed.refresh()).rejects.toThrow('cut off');
    expect(() => feed.isRevoked(tokenOf('a'))).toThrow(TokenVerificationUnavailableError);
  });

  describe('from a source with pages', () => {
    /**
     * Creates a feed over pages of one revocation each (`p0`, `p1`, …). The test chooses the page that fails
     * next.
     */
    function pagedFeed(options: Partial<RevocationFeedOptions> = {}) {
      const clock = new ManualClock('2026-03-01T12:00:00Z');
      const list = ['p0', 'p1', 'p2', 'p3'].map((name, n) => revoked(name, n));
      const requested: (Date | string)[] = [];
      const source = { failing: null as Error | null, failsAt: '', present: at(40) };
      const readPage = (from: Date | string): Promise<RevocationPage> => {
        requested.push(from);
        clock.advance(25_000);
        const rest = list.filter(({ identifier, revocationDate }) =>
          typeof from === 'string' ? identifier > from : new Date(revocationDate) > from,
        );
        const [first] = rest;
        if (source.failing !== null && source.failsAt === first?.identifier)
          return Promise.reject(source.failing);
        const next = rest.length > 1 ? first!.identifier : null;
        return Promise.resolve({ revocations: rest.slice(0, 1), next, present: new Date(source.present) });
      };
      const changesSince = (): never => {
        throw new Error('there are pages');
      };
      const feed = new RevocationFeed({ clock, source: { changesSince, readPage }, ...options });
      return { feed, clock, list, requested, source };
    }

    it('resumes a first load at the page that failed, however long the load takes', async () => {
      const { feed, list, requested, source } = pagedFeed({ pollTimeoutMs: 60_000, maxAgeMs: 30_000 });
      source.failing = new Error('cut off');
      source.failsAt = 'p2';
      await expect(feed.refresh()).rejects.toThrow('cut off');
      await expect(feed.refresh()).rejects.toThrow('cut off');
      expect(() => feed.assertFresh()).toThrow(TokenVerificationUnavailableError);
      source.failing = null;
      list.push(revoked('set-during-load', 20));
      await feed.refresh();
      expect(requested).toEqual([new Date(0), 'p0', 'p1', 'p1', 'p1', 'p2', 'p3']);
      expect(feed.size).toBe(5);
      // The load began too long ago for the feed to be fresh. The next poll reads from before the load began.
      expect(() => feed.assertFresh()).toThrow(TokenVerificationUnavailableError);
      await feed.refresh();
      expect(requested[7]).toEqual(new Date(at(10)));
      expect(feed.isRevoked(tokenOf('set-during-load'))).toBe(true);
    });

    it('restarts the first load when the source rejects its position', async () => {
      const { feed, requested, source } = pagedFeed();
      source.failing = new StaleRevocationPosition('a key was changed');
      source.failsAt = 'p2';
      await expect(feed.refresh()).rejects.toThrow('a key was changed');
      source.failing = null;
      await feed.refresh();
      expect(requested.slice(0, 4)).toEqual([new Date(0), 'p0', 'p1', new Date(0)]);
      expect(feed.size).toBe(4);
    });

    it('reloads everything at intervals, one page per poll, and drops what the source purged', async () => {
      const { feed, clock, list, source } = pagedFeed({ reloadIntervalMs: 3_600_000, maxAgeMs: 86_400_000 });
      await feed.refresh();
      expect(feed.isRevoked(tokenOf('p0'))).toBe(true);
      clock.advance(3_600_000);
      list.shift();
      source.failing = new Error('cut off');
      source.failsAt = 'p2';
      for (let poll = 0; poll < 3; poll += 1) await feed.refresh();
      // The reload failed halfway, so the index is unchanged.
      expect(feed.isRevoked(tokenOf('p0'))).toBe(true);
      source.failing = null;
      list.push(revoked('set-during-load', 50));
      for (let poll = 0; poll < 4; poll += 1) {
        await feed.refresh();
        expect(feed.isRevoked(tokenOf('set-during-load'))).toBe(true);
        expect(feed.isRevoked(tokenOf('p3'))).toBe(true);
      }
      expect(feed.isRevoked(tokenOf('p0'))).toBe(false);
      expect(feed.size).toBe(4);
    });
  });

  it('serves its data through a short outage, fails closed after maxAgeMs, and recovers', async () => {
    const { feed, clock, list, outages, fail } = testFeed({ maxAgeMs: 30_000 });
    list.push(revoked('a'));
    await feed.refresh();
    const down = new Error('down');
    fail(down);
    await expect(feed.refresh()).rejects.toBe(down);
    await expect(feed.refresh()).rejects.toBe(down);
    clock.advance(30_000);
    expect(feed.isRevoked(tokenOf('a'))).toBe(true);
    clock.advance(1);
    expect(() => feed.isRevoked(tokenOf('b'))).toThrow(TokenVerificationUnavailableError);
    fail(null);
    await feed.refresh();
    expect(feed.isRevoked(tokenOf('b'))).toBe(false);
    expect(outages).toEqual([down, null]);
  });

  it('reports an outage again when its cause changes', async () => {
    const { feed, outages, fail } = testFeed();
    const unknown = new Error('cannot sign in', { cause: new Error('unknown application') });
    for (const failure of [new Error('ECONNRESET'), new Error('ECONNRESET'), unknown, unknown]) {
      fail(failure);
      await expect(feed.refresh()).rejects.toThrow(failure);
    }
    expect(outages).toEqual([new Error('ECONNRESET'), unknown]);
    expect(() => feed.assertFresh()).toThrow(expect.objectContaining({ cause: unknown }));
  });

  it('counts its age from the start of the poll, not from its end', async () => {
    const { feed, clock } = testFeed({
      maxAgeMs: 1_000,
      source: {
        changesSince: () => {
          clock.advance(1_001);
          return Promise.resolve([]);
        },
      },
    });
    await feed.refresh();
    expect(() => feed.assertFresh()).toThrow(TokenVerificationUnavailableError);
  });

  it('starts even if the first attempt fails, and leaves no poll running when stopped', async () => {
    const { feed, requested, fail } = testFeed({ pollIntervalMs: 1_000 });
    fail(new Error('down'));
    await feed.start();
    expect(() => feed.assertFresh()).toThrow(TokenVerificationUnavailableError);
    await feed.stop();
    expect(requested).toHaveLength(1);
  });

  it('aborts the poll in flight when it stops', async () => {
    const hanging = (_: Date, signal?: AbortSignal): Promise<Revocation[]> =>
      new Promise((_resolve, reject) =>
        signal?.addEventListener('abort', () => reject(signal.reason as Error)),
      );
    const { feed, outages } = testFeed({ source: { changesSince: hanging } });
    const starting = feed.start();
    await feed.stop();
    await starting;
    expect(outages).toEqual([]);
  });

  it('refuses a poll interval over 1 s', () => {
    expect(() => testFeed({ pollIntervalMs: 1_001 })).toThrow(RangeError);
  });
});
