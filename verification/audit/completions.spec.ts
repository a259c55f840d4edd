import { auditCompletionInstants } from './completions.ts';

const START_MS = performance.timeOrigin;
const OPERATION = { id: 'i', group: '1', invokedAtMs: 1_000, acknowledgedAtMs: 2_000 };
const CLOCKS = { endedAtMs: START_MS + 9_000, toleranceMs: 100 };
const stored = (afterMs: number) => ({
  id: 'i',
  group: '1',
  completedAtMs: Math.round(START_MS + afterMs),
  dueAtMs: 5_000,
});
const event = (completedAtMs: number, dueAtMs = 5_000) => ({
  name: 'TaskInstanceCompletedEvent',
  messageId: 'm',
  message: {
    taskInstanceId: 'i',
    completedAtUtc: new Date(completedAtMs).toISOString(),
    dueAtUtc: new Date(dueAtMs).toISOString(),
  },
});

describe('auditCompletionInstants', () => {
  const audit = (afterMs: number, acknowledgedAtMs: number | null = 2_000) => {
    const completion = stored(afterMs);
    const operation = { ...OPERATION, acknowledgedAtMs };
    return auditCompletionInstants([operation], [completion], [event(completion.completedAtMs)], CLOCKS);
  };

  it('accepts a date between request and acknowledgement, with a tolerance for clocks', () => {
    for (const afterMs of [920, 1_500, 2_080]) expect(audit(afterMs).findings).toEqual([]);
    expect(audit(8_000, null).findings).toEqual([]);
  });

  it('reports a completion dated before the request or after the acknowledgement', () => {
    for (const afterMs of [500, 2_500]) expect(audit(afterMs).findings).toHaveLength(1);
    expect(audit(9_500, null).findings).toHaveLength(1);
  });

  it('reports an event with other instants than those stored', () => {
    const completion = stored(1_500);
    const findings = (published: ReturnType<typeof event>): readonly string[] =>
      auditCompletionInstants([OPERATION], [completion], [published], CLOCKS).findings;
    expect(findings(event(completion.completedAtMs + 1))).toHaveLength(1);
    expect(findings(event(completion.completedAtMs, 6_000))).toHaveLength(1);
  });
});
