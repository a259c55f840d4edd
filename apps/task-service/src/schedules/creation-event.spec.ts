import { createEnvelope } from '@platform/messaging';
import { scheduleCreated, splitAtCreation } from './creation-event';

const bodyOf = (name: string): string => {
  const { contract, message } = scheduleCreated({
    scheduleId: '00000000-0000-4000-8000-000000000001',
    facilityId: 501,
    name,
    schedule: '0 9 * * 1',
    timeZone: 'UTC',
    createdBy: { personId: null, name, persona: 1 },
  });
  const sentAt = new Date(0);
  return createEnvelope(contract, message, { namespace: 'Tests', messageId: 'm', sentAt }).body;
};

describe('the event of a schedule to be', () => {
  it.each([
    'Fire drill',
    '1970-01-01T00:00:00.000Z',
    '"createdAtUtc":"1970-01-01T00:00:00.000Z"',
    '\\"createdAtUtc":"1970-01-01T00:00:00.000Z"',
  ])('takes the instant of creation where it belongs, whatever the name: %s', (name) => {
    const [before, after] = splitAtCreation(bodyOf(name));
    const { message } = JSON.parse(`${before}2026-03-01T12:00:00.123Z${after}`);
    expect(message).toMatchObject({ name, createdAtUtc: '2026-03-01T12:00:00.123Z', createdBy: { name } });
  });

  it('is refused when the instant has no place in it', () => {
    expect(() => splitAtCreation('{}')).toThrow('no single createdAtUtc');
  });
});
