import { dueOccurrences } from './instance-generation.service';

const schedule = (overrides: Partial<Parameters<typeof dueOccurrences>[0][number]> = {}) => ({
  scheduleId: 'a',
  schedule: '0 6 * * *',
  timeZone: 'UTC',
  generatedUntil: new Date('2026-01-01T06:00:00Z'),
  horizonAt: new Date('2026-01-03T06:00:00Z'),
  ...overrides,
});

describe('occurrences to generate', () => {
  it('start behind what was generated and include the horizon', () => {
    expect([...dueOccurrences([schedule()])]).toEqual([
      { scheduleId: 'a', dueAt: new Date('2026-01-02T06:00:00Z') },
      { scheduleId: 'a', dueAt: new Date('2026-01-03T06:00:00Z') },
    ]);
  });

  it('are each schedule’s own, whether settings are alike or not', () => {
    const found = [
      ...dueOccurrences([
        schedule(),
        schedule({ scheduleId: 'b' }),
        schedule({ scheduleId: 'c', timeZone: 'Europe/Berlin' }),
      ]),
    ];
    expect(found.map(({ scheduleId, dueAt }) => `${scheduleId} ${dueAt.toISOString().slice(8, 13)}`)).toEqual(
      ['a 02T06', 'a 03T06', 'b 02T06', 'b 03T06', 'c 02T05', 'c 03T05'],
    );
  });
});
