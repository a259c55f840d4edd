import { BusinessUnitChangeV1, TaskInstanceCompletedEvent } from './main-bus-messages';
import { InvalidMessageError, readMessage } from './read-message';

const CHANGE = {
  eventId: '01930000-5d2b-0015-8c3a-08dd0a1b2c3d',
  occurredAtUtc: '2026-01-05T10:00:00.1234567+01:00',
  businessUnitId: 77,
  facilityIds: [501, 502],
  changeType: 'Activated',
};

describe('readMessage', () => {
  it('drops fields added by a newer sender', () => {
    expect(readMessage(BusinessUnitChangeV1, { ...CHANGE, addedLater: 1 })).toEqual(CHANGE);
  });

  it('accepts null for an absent optional field', () => {
    expect(readMessage(BusinessUnitChangeV1, { ...CHANGE, timeZone: null })).toEqual(CHANGE);
  });

  it('matches property names in any case, also inside objects', () => {
    const completed = {
      TaskInstanceId: CHANGE.eventId,
      ScheduleId: CHANGE.eventId,
      FacilityId: 501,
      DueAtUtc: '2026-01-05T10:00:00Z',
      CompletedAtUtc: '2026-01-05T10:00:00Z',
      CompletedBy: { PersonId: null, Name: 'Ivy', Persona: 1 },
    };
    expect(readMessage(TaskInstanceCompletedEvent, completed)).toMatchObject({
      facilityId: 501,
      completedBy: { personId: null, name: 'Ivy', persona: 1 },
    });
  });

  it('prefers the exact name when a sender writes both', () => {
    expect(readMessage(BusinessUnitChangeV1, { ...CHANGE, BusinessUnitId: 1 }).businessUnitId).toBe(77);
  });

  it.each([
    ['an integer that a double cannot hold', { ...CHANGE, businessUnitId: 2 ** 53 }, 'businessUnitId'],
    ['a fraction', { ...CHANGE, facilityIds: [501.5] }, 'facilityIds.0'],
    ['a number as text', { ...CHANGE, businessUnitId: '77' }, 'businessUnitId'],
    ['a local time', { ...CHANGE, occurredAtUtc: '2026-01-05T10:00:00' }, 'occurredAtUtc'],
    ['a day that does not exist', { ...CHANGE, occurredAtUtc: '2026-02-30T10:00:00Z' }, 'occurredAtUtc'],
    ['an unknown kind of change', { ...CHANGE, changeType: 'activated' }, 'changeType'],
    ['null in a required field', { ...CHANGE, eventId: null }, 'eventId'],
    ['a missing field', { ...CHANGE, facilityIds: undefined }, 'facilityIds'],
    ['a list', [CHANGE], '(message)'],
    ['null', null, '(message)'],
  ])('refuses %s and names the field', (_what, json, field) => {
    const read = (): unknown => readMessage(BusinessUnitChangeV1, json);
    expect(read).toThrow(InvalidMessageError);
    expect(read).toThrow(field);
  });

  it('does not quote values', () => {
    expect(() => readMessage(BusinessUnitChangeV1, { ...CHANGE, changeType: 'hunter2' })).not.toThrow(
      /hunter2/,
    );
  });
});
