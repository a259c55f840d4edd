import { auditRevocationFeed, auditSettingsFeed, type FeedChange } from './feeds.ts';

const HISTORY = [
  { id: 'x', group: 'a', etag: '"1"' },
  { id: 'y', group: 'b', etag: '"2"' },
  { id: 'z', group: 'a', etag: '"3"' },
];
const changes = (...etags: readonly number[]): FeedChange[] =>
  etags.map((number) => ({ settingName: number === 2 ? 'b' : 'a', etag: `"${number}"` }));
const audit = (...etags: readonly number[]) => auditSettingsFeed(changes(...etags), HISTORY);

describe('auditSettingsFeed', () => {
  it('accepts each write once, in the order of its setting', () => {
    expect(audit(2, 1, 3)).toMatchObject({ acknowledged: 3, audited: 3, findings: [] });
  });

  it('reports a write that was skipped or received twice', () => {
    expect(audit(1, 3).lost).toBe(1);
    expect(audit(1, 2, 3, 3).duplicated).toBe(1);
  });

  it('reports writes of one setting out of order, and a change that was never written', () => {
    expect(audit(3, 2, 1).findings).toHaveLength(1);
    expect(audit(1, 2, 3, 4).findings).toHaveLength(1);
  });
});

describe('auditRevocationFeed', () => {
  it('finds a revocation that was never listed', () => {
    expect(auditRevocationFeed(['a'], new Set(['a', 'b'])).findings).toEqual([]);
    expect(auditRevocationFeed(['a', 'c'], new Set(['a', 'b'])).lost).toBe(1);
  });
});
