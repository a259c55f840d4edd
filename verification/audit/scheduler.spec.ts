import type { BusinessUnitChange, Life } from '#verification/traffic/journal.ts';
import { auditBusinessUnits, auditLives } from './scheduler.ts';

const life = (more: Partial<Life> = {}): Life => ({
  scheduleId: 's',
  idempotencyKey: 'k',
  name: 'b',
  status: 'Paused',
  events: ['ScheduleUpdatedEvent a', 'ScheduleUpdatedEvent b', 'SchedulePausedEvent b'],
  uncertain: null,
  isOver: false,
  activeSinceMs: 0,
  ...more,
});
const event = (name: string, about: string, messageId = `${name} ${about}`) => ({
  name,
  messageId,
  message: { scheduleId: 's', name: about },
});
const updated = [event('ScheduleUpdatedEvent', 'a'), event('ScheduleUpdatedEvent', 'b')] as const;
const paused = event('SchedulePausedEvent', 'b');
const schedules = [{ scheduleId: 's', name: 'b', status: 'Paused' }];

describe('auditLives', () => {
  it('is content with each event in the order of its type, published any number of times', () => {
    const published = [paused, ...updated, updated[0]];
    expect(auditLives([life()], { schedules, published })).toMatchObject({ acknowledged: 3, findings: [] });
  });

  it('lets a change that nobody acknowledged have happened or not', () => {
    const uncertain = life({ uncertain: 'ScheduleResumedEvent b' });
    const resumed = event('ScheduleResumedEvent', 'b');
    for (const published of [
      [...updated, paused],
      [...updated, paused, resumed],
    ])
      expect(auditLives([uncertain], { schedules, published }).findings).toEqual([]);
    const twice = [...updated, paused, resumed, { ...resumed, messageId: 'other' }];
    expect(auditLives([uncertain], { schedules, published: twice }).duplicated).toBe(1);
  });

  it.each([
    ['an event that is missing', [...updated]],
    ['a second event of one change', [...updated, paused, { ...paused, messageId: 'other' }]],
    ['events out of order', [updated[1], updated[0], paused]],
    [
      'events of nobody’s change',
      [...updated, paused, { ...paused, messageId: 'o', message: { scheduleId: 't' } }],
    ],
  ])('finds %s', (_what, published) => {
    expect(auditLives([life()], { schedules, published }).findings).toHaveLength(1);
  });

  it('finds a schedule that is not as it was acknowledged, or gone', () => {
    const published = [...updated, paused];
    const other = [{ scheduleId: 's', name: 'a', status: 'Paused' }];
    expect(auditLives([life()], { schedules: other, published }).findings).toHaveLength(1);
    expect(auditLives([life()], { schedules: [], published }).lost).toBe(1);
  });
});

const change = (
  eventId: string,
  minute: number,
  changeType: BusinessUnitChange['changeType'],
): BusinessUnitChange => ({
  eventId,
  businessUnitId: 77,
  changeType,
  facilityIds: [1, 2],
  occurredAtUtc: `2026-01-05T10:0${minute}:00Z`,
});
const first = change('e1', 1, 'Activated');
const second = change('e2', 2, 'Deactivated');

describe('auditBusinessUnits', () => {
  it('is content when all were taken, none took effect twice, and the youngest is in force', () => {
    const applied = { applications: ['e1', 'e2'], taken: ['e1', 'e2'], triggered: new Set<number>() };
    expect(auditBusinessUnits([first, second], [first, second], applied).findings).toEqual([]);
  });

  it('lets an older change be passed over', () => {
    const applied = { applications: ['e2'], taken: ['e1', 'e2'], triggered: new Set<number>() };
    expect(auditBusinessUnits([first, second], [second, first], applied).findings).toEqual([]);
  });

  it('finds changes that were lost on the way or took effect twice', () => {
    const applied = { applications: ['e2', 'e2'], taken: ['e2'], triggered: new Set<number>() };
    const check = auditBusinessUnits([first, second, change('e3', 1, 'Activated')], [first, second], applied);
    expect(check).toMatchObject({ lost: 2, duplicated: 1 });
  });

  it('finds triggers that are not those of the youngest change', () => {
    const applied = { applications: ['e1', 'e2'], taken: ['e1', 'e2'], triggered: new Set([2]) };
    expect(auditBusinessUnits([first, second], [first, second], applied).findings).toHaveLength(1);
  });
});
