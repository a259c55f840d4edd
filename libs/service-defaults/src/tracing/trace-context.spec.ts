import { currentTraceId, newTrace, newTraceId, traceIdOf, withTrace } from '../index';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';

describe('trace context', () => {
  it('reads the trace of a traceparent header', () => {
    expect(traceIdOf(`00-${TRACE}-00f067aa0ba902b7-01`)).toBe(TRACE);
    expect(traceIdOf(`01-${TRACE}-00f067aa0ba902b7-01-future`)).toBe(TRACE);
  });

  it.each([
    undefined,
    ['00'],
    '',
    TRACE,
    `ff-${TRACE}-00f067aa0ba902b7-01`,
    `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE.toUpperCase()}-00f067aa0ba902b7-01`,
    `00-${TRACE}"}-00f067aa0ba902b7-01`,
  ])('takes %p for no trace', (header) => {
    expect(traceIdOf(header)).toBeNull();
  });

  it('follows asynchronous work', async () => {
    const traceId = newTraceId();
    expect(traceId).toMatch(/^[0-9a-f]{32}$/);
    await withTrace(newTrace(traceId), async () => {
      await Promise.resolve();
      expect(currentTraceId()).toBe(traceId);
    });
    expect(currentTraceId()).toBeUndefined();
  });
});
