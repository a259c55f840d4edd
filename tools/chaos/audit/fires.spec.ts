import { auditFires } from './scheduler.ts';

const MINUTE_MS = 60_000;
const PLANTED = [{ facilityId: 1, firstDueAtMs: 0 }];
const fire = (minute: number, messageId = `m${minute}`, facilityId = 1) => ({
  facilityId,
  scheduledAtMs: minute * MINUTE_MS,
  messageId,
});
const nextAfter = (minute: number) => new Map([[1, minute * MINUTE_MS]]);

describe('auditFires', () => {
  it('is content when each minute up to the next one fired once', () => {
    const stored = [fire(0), fire(1)];
    const published = [fire(0), fire(0), fire(1)];
    expect(auditFires(PLANTED, nextAfter(2), { stored, published })).toMatchObject({
      acknowledged: 2,
      audited: 2,
      lost: 0,
      duplicated: 0,
      findings: [],
    });
  });

  it('finds an occurrence that did not fire, and one that fired and was not published', () => {
    expect(auditFires(PLANTED, nextAfter(2), { stored: [fire(0)], published: [fire(0)] }).lost).toBe(2);
    expect(auditFires(PLANTED, nextAfter(1), { stored: [fire(0)], published: [] }).lost).toBe(1);
  });

  it('finds one that fired twice, or as two messages', () => {
    const twice = { stored: [fire(0), fire(0, 'other')], published: [fire(0), fire(0, 'other')] };
    expect(auditFires(PLANTED, nextAfter(1), twice).duplicated).toBe(2);
  });

  it('finds one that was published and never recorded', () => {
    const ghost = { stored: [fire(0)], published: [fire(0), fire(1)] };
    expect(auditFires(PLANTED, nextAfter(1), ghost).findings).toHaveLength(1);
  });

  it('finds occurrences of a facility published out of order, not those of different ones or repeated', () => {
    const stored = [fire(0), fire(1)];
    expect(
      auditFires(PLANTED, nextAfter(2), { stored, published: [fire(1), fire(0)] }).findings,
    ).toHaveLength(1);
    expect(
      auditFires(PLANTED, nextAfter(2), { stored, published: [fire(0), fire(1), fire(0)] }).findings,
    ).toEqual([]);
  });

  it('finds a trigger that is gone', () => {
    expect(auditFires(PLANTED, new Map(), { stored: [], published: [] }).lost).toBe(1);
  });
});
