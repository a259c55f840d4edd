import type { StoredWrite } from './messages.ts';
import { type Check, CheckBuilder, countBy } from './check.ts';

/** A write of a setting in the history. */
export interface StoredSetting extends StoredWrite {
  readonly etag: string;
}

/** A change in the feed of settings. */
export interface FeedChange {
  readonly settingName: string;
  readonly etag: string | null;
}

/**
 * Checks that a reader that followed the feed from before the first write received each write once, and the
 * writes of one setting in order.
 * @param received in the order of reception
 * @param history in the order of the writes
 */
export function auditSettingsFeed(received: readonly FeedChange[], history: readonly StoredSetting[]): Check {
  const check = new CheckBuilder('feeds: a reader of settings received each write, once, in order');
  const positions = new Map(history.map(({ etag }, position) => [etag, position]));
  const counts = countBy(received, ({ etag }) => String(etag));
  check.expectEach(positions.keys(), counts, (etag) => `write ${etag}`);
  check.expectAtMostOnce(counts, (etag, count) => `write ${etag} (received ${count} times)`);
  check.expectOnly(
    positions,
    counts.keys(),
    (etag) => `the reader received ${etag}, which was never written`,
  );
  const newest = new Map<string, number>();
  for (const { settingName, etag } of received) {
    const position = positions.get(String(etag));
    if (position === undefined) continue;
    if (position < (newest.get(settingName) ?? 0))
      check.wrong(`order of ${settingName}: the reader received ${String(etag)} after a later write`);
    newest.set(settingName, Math.max(position, newest.get(settingName) ?? 0));
  }
  return check.done(history.length, received.length);
}

/**
 * Checks that a reader that polled the list of revocations, as its API description prescribes, has seen each
 * acknowledged one.
 */
export function auditRevocationFeed(acknowledged: readonly string[], seen: ReadonlySet<string>): Check {
  const check = new CheckBuilder('feeds: a reader of revocations has seen each one');
  check.expectEach(acknowledged, seen, (jti) => `the revocation of ${jti}`);
  return check.done(acknowledged.length, seen.size);
}
