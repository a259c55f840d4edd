import type { StoredWrite } from './messages.ts';
import { type Check, CheckBuilder, countBy } from './check.ts';

/** A write of a setting as the history has it. */
export interface StoredSetting extends StoredWrite {
  readonly etag: string;
}

/** A change as the feed of settings tells of it. */
export interface ToldChange {
  readonly settingName: string;
  readonly etag: string | null;
}

/**
 * A reader that followed the feed from before the first write was told of each one, once, and of those of one
 * setting in their order.
 * @param told in the order in which the reader was told
 * @param history in its own order
 */
export function auditSettingsFeed(told: readonly ToldChange[], history: readonly StoredSetting[]): Check {
  const check = new CheckBuilder('feeds: a reader of settings was told of each write, once, in order');
  const positions = new Map(history.map(({ etag }, position) => [etag, position]));
  const counts = countBy(told, ({ etag }) => String(etag));
  check.eachOf(positions.keys(), counts, (etag) => `write ${etag}`);
  check.atMostOnce(counts, (etag, count) => `write ${etag} (told ${count} times)`);
  check.nothingBut(positions, counts.keys(), (etag) => `the reader was told of ${etag}, which nobody wrote`);
  const newest = new Map<string, number>();
  for (const { settingName, etag } of told) {
    const position = positions.get(String(etag));
    if (position === undefined) continue;
    if (position < (newest.get(settingName) ?? 0))
      check.wrong(`order of ${settingName}: the reader was told of ${String(etag)} after a later one`);
    newest.set(settingName, Math.max(position, newest.get(settingName) ?? 0));
  }
  return check.done(history.length, told.length);
}

/**
 * A reader that followed the list of revocations, as its description says, has seen each one that was
 * acknowledged.
 */
export function auditRevocationFeed(acknowledged: readonly string[], seen: ReadonlySet<string>): Check {
  const check = new CheckBuilder('feeds: a reader of revocations has seen each one');
  check.eachOf(acknowledged, seen, (jti) => `the revocation of ${jti}`);
  return check.done(acknowledged.length, seen.size);
}
