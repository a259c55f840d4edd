import type { BusinessUnitChange, ChangedSchedule } from '#verification/traffic/journal.ts';
import { auditBusinessUnits, auditScheduleChanges } from './changes.ts';

const changed = (more: Partial<ChangedSchedule> = {}): ChangedSchedule => ({
  scheduleId: 's',
  idempotencyKey: 'k',
  name: 'b',
  status: 'Paused',
  events: ['ScheduleUpdatedEvent a', 'ScheduleUpdatedEvent b', 'SchedulePausedEvent b'],
  uncertainEvent: null,
  isClosed: false,
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

describe('auditScheduleChanges', () => {
  it('accepts events that are in order within their type, published any number of times', () => {
    const published = [paused, ...updated, updated[0]];
    expect(auditScheduleChanges([changed()], { schedules, published })).toMatchObject({
      acknowledged: 3,
      findings: [],
    });
  });

  it('accepts an unacknowledged change, applied or not', () => {
    const uncertain = changed({ uncertainEvent: 'ScheduleResumedEvent b' });
    const resumed = event('ScheduleResumedEvent', 'b');
    for (const published of [
      [...updated, paused],
      [...updated, paused, resumed],
    ])
      expect(auditScheduleChanges([uncertain], { schedules, published }).findings).toEqual([]);
    const twice = [...updated, paused, resumed, { ...resumed, messageId: 'other' }];
    expect(auditScheduleChanges([uncertain], { schedules, published: twice }).duplicated).toBe(1);
  });

  it.each([
    ['an event that is missing', [...updated]],
    ['a second event of one change', [...updated, paused, { ...paused, messageId: 'other' }]],
    ['events out of order', [updated[1], updated[0], paused]],
    [
      'events of a change that was never requested',
      [...updated, paused, { ...paused, messageId: 'o', message: { scheduleId: 't' } }],
    ],
  ])('finds %s', (_what, published) => {
    expect(auditScheduleChanges([changed()], { schedules, published }).findings).toHaveLength(1);
  });

  it('finds a schedule that differs from its acknowledged state, or is missing', () => {
    const published = [...updated, paused];
    const other = [{ scheduleId: 's', name: 'a', status: 'Paused' }];
    expect(auditScheduleChanges([changed()], { schedules: other, published }).findings).toHaveLength(1);
    expect(auditScheduleChanges([changed()], { schedules: [], published }).lost).toBe(1);
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
  it('accepts changes that were consumed, applied at most once, and the youngest in force', () => {
    const applied = { applications: ['e1', 'e2'], consumed: ['e1', 'e2'], triggered: new Set<number>() };
    expect(auditBusinessUnits([first, second], [first, second], applied).findings).toEqual([]);
  });

  it('accepts that an older change was not applied', () => {
    const applied = { applications: ['e2'], consumed: ['e1', 'e2'], triggered: new Set<number>() };
    expect(auditBusinessUnits([first, second], [second, first], applied).findings).toEqual([]);
  });

  it('finds changes that were lost or took effect twice', () => {
    const applied = { applications: ['e2', 'e2'], consumed: ['e2'], triggered: new Set<number>() };
    const check = auditBusinessUnits([first, second, change('e3', 1, 'Activated')], [first, second], applied);
    expect(check).toMatchObject({ lost: 2, duplicated: 1 });
  });

  it('finds triggers that contradict the youngest change', () => {
    const applied = { applications: ['e1', 'e2'], consumed: ['e1', 'e2'], triggered: new Set([2]) };
    expect(auditBusinessUnits([first, second], [first, second], applied).findings).toHaveLength(1);
  });
});
