import { auditEvents, auditReceived, firstPublished } from './messages.ts';

const event = (subject: string, messageId: string) => ({ subject, messageId });

describe('auditEvents', () => {
  it('is content with one event for each fact, published any number of times', () => {
    const check = auditEvents('x', ['a', 'b'], [event('a', '1'), event('a', '1'), event('b', '2')]);
    expect(check).toMatchObject({ acknowledged: 2, audited: 2, deliveries: 3, lost: 0, findings: [] });
  });

  it('finds a fact without an event', () => {
    expect(auditEvents('x', ['a'], [])).toMatchObject({ lost: 1 });
  });

  it('finds a fact with two events', () => {
    expect(auditEvents('x', ['a'], [event('a', '1'), event('a', '2')])).toMatchObject({ duplicated: 1 });
  });

  it('finds an event of something that did not happen', () => {
    expect(auditEvents('x', [], [event('a', '1')]).findings).toEqual([
      'an event tells of a, which did not happen',
    ]);
  });
});

describe('auditReceived', () => {
  it('finds what was lost, taken twice, or made up', () => {
    const check = auditReceived('x', ['a', 'b', 'b'], ['b', 'b', 'c']);
    expect(check).toMatchObject({ acknowledged: 2, lost: 1, duplicated: 1 });
    expect(check.findings).toHaveLength(3);
  });
});

describe('firstPublished', () => {
  it('keeps the first of each message, in order', () => {
    const events = [event('a', '1'), event('b', '2'), event('a', '1')];
    expect(firstPublished(events)).toEqual([event('a', '1'), event('b', '2')]);
  });
});
