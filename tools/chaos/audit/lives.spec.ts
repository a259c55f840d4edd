import type { Life } from '../load/journal.ts';
import { auditLives } from './lives.ts';

const life = (more: Partial<Life> = {}): Life => ({
  ...{ scheduleId: 's', name: 'b', status: 'Paused' },
  events: ['ScheduleUpdatedEvent a', 'ScheduleUpdatedEvent b', 'SchedulePausedEvent b'],
  ...{ uncertain: null, isOver: false },
  ...more,
});
const event = (name: string, about: string, messageId = `${name} ${about}`) => ({
  ...{ name, messageId },
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
