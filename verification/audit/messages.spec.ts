import type { Operation } from '#verification/traffic/journal.ts';
import { flagEmptyComparison } from './check.ts';
import {
  auditEvents,
  auditLastValues,
  auditReceived,
  auditStored,
  auditWrites,
  firstPublished,
} from './messages.ts';

const operation = (id: string, invokedAtMs: number, acknowledgedAtMs: number | null): Operation => ({
  id,
  group: 'g',
  invokedAtMs,
  acknowledgedAtMs,
});
const stored = (...ids: string[]) => ids.map((id) => ({ id, group: 'g' }));

describe('auditWrites', () => {
  it('accepts every acknowledged write once, and an unacknowledged one stored or not', () => {
    const operations = [operation('a', 0, 1), operation('b', 2, null), operation('c', 3, 4)];
    expect(auditWrites('x', operations, stored('a', 'c')).findings).toEqual([]);
    expect(auditWrites('x', operations, stored('a', 'b', 'c'))).toMatchObject({
      acknowledged: 2,
      audited: 3,
      lost: 0,
      duplicated: 0,
      findings: [],
    });
  });

  it('finds an acknowledged write that is not stored', () => {
    expect(auditWrites('x', [operation('a', 0, 1)], [])).toMatchObject({
      lost: 1,
      findings: ['lost: a of g'],
    });
  });

  it('finds a write that is stored twice, acknowledged or not', () => {
    const operations = [operation('a', 0, 1), operation('b', 0, null)];
    expect(auditWrites('x', operations, stored('a', 'a', 'b', 'b')).duplicated).toBe(2);
  });

  it('finds a write that was never requested', () => {
    expect(auditWrites('x', [], stored('a')).findings).toEqual(['never requested: a of g']);
  });

  it('accepts concurrent writes in either order', () => {
    const operations = [operation('a', 0, 10), operation('b', 5, 8)];
    expect(auditWrites('x', operations, stored('a', 'b')).findings).toEqual([]);
    expect(auditWrites('x', operations, stored('b', 'a')).findings).toEqual([]);
  });

  it('finds a write that precedes one acknowledged before it was requested', () => {
    const operations = [operation('a', 0, 1), operation('b', 2, 3), operation('c', 4, null)];
    expect(auditWrites('x', operations, stored('b', 'a')).findings).toHaveLength(1);
    expect(auditWrites('x', operations, stored('c', 'a', 'b')).findings).toHaveLength(1);
  });

  it('does not compare the order of different groups', () => {
    const operations = [operation('a', 0, 1), { ...operation('b', 2, 3), group: 'other' }];
    const rows = [
      { id: 'b', group: 'other' },
      { id: 'a', group: 'g' },
    ];
    expect(auditWrites('x', operations, rows).findings).toEqual([]);
  });
});

describe('auditLastValues', () => {
  it('accepts settings whose value is the last one in their history', () => {
    expect(auditLastValues(new Map([['g', 'b']]), stored('a', 'b')).findings).toEqual([]);
  });

  it('finds an outdated value, a missing setting and one without a history', () => {
    expect(auditLastValues(new Map([['g', 'a']]), stored('a', 'b')).findings).toHaveLength(1);
    expect(auditLastValues(new Map(), stored('a')).findings).toHaveLength(1);
    expect(auditLastValues(new Map([['h', 'a']]), []).findings).toHaveLength(1);
  });
});

const event = (subject: string, messageId: string) => ({ subject, messageId });

describe('auditEvents', () => {
  it('accepts one event for each fact, published any number of times', () => {
    const check = auditEvents('x', ['a', 'b'], [event('a', '1'), event('a', '1'), event('b', '2')]);
    expect(check).toMatchObject({ acknowledged: 2, audited: 2, deliveries: 3, lost: 0, findings: [] });
  });

  it('finds a fact without an event', () => {
    expect(auditEvents('x', ['a'], [])).toMatchObject({ lost: 1 });
  });

  it('finds a fact with two events', () => {
    expect(auditEvents('x', ['a'], [event('a', '1'), event('a', '2')])).toMatchObject({ duplicated: 1 });
  });

  it('finds an event without a fact', () => {
    expect(auditEvents('x', [], [event('a', '1')]).findings).toEqual([
      'an event reports a, which did not happen',
    ]);
  });
});

describe('auditReceived', () => {
  it('finds lost and invented messages, and does not count duplicates', () => {
    const check = auditReceived('x', ['a', 'b', 'b'], ['b', 'c']);
    expect(check).toMatchObject({ acknowledged: 2, lost: 1, duplicated: null });
    expect(check.findings).toHaveLength(2);
  });
});

describe('auditStored', () => {
  it('finds missing and invented rows, and accepts an unacknowledged one stored or not', () => {
    const operations = [operation('a', 1, 2), operation('b', 1, 2), operation('c', 1, null)];
    expect(auditStored('x', operations, ['a', 'b', 'c'])).toMatchObject({ acknowledged: 2, findings: [] });
    const check = auditStored('x', operations, ['a', 'd']);
    expect(check).toMatchObject({ lost: 1, duplicated: null, findings: ['lost: b', 'never requested: d'] });
  });
});

describe('firstPublished', () => {
  it('returns the first publication of each message, in order', () => {
    const events = [event('a', '1'), event('b', '2'), event('a', '1')];
    expect(firstPublished(events)).toEqual([event('a', '1'), event('b', '2')]);
  });
});

it('an empty comparison is a finding', () => {
  expect(flagEmptyComparison(auditWrites('x', [], [])).findings).toHaveLength(1);
  expect(flagEmptyComparison(auditWrites('x', [operation('a', 0, 1)], stored('a'))).findings).toEqual([]);
});
