import {
  currentTrace,
  currentTraceId,
  newTrace,
  newTraceId,
  traceHeaders,
  traceIdOf,
  traceOf,
  withoutTrace,
  withTrace,
} from '../index';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';

describe('trace context', () => {
  it('reads the trace of a traceparent header', () => {
    expect(traceIdOf(`00-${TRACE}-${SPAN}-01`)).toBe(TRACE);
    expect(traceIdOf(`01-${TRACE}-${SPAN}-01-future`)).toBe(TRACE);
  });

  it.each([
    undefined,
    ['00'],
    '',
    TRACE,
    `ff-${TRACE}-${SPAN}-01`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${TRACE}"}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01-more`,
    `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-00`,
    `01-${TRACE}-${SPAN}-01future`,
  ])('finds no trace in %p', (header) => {
    expect(traceIdOf(header)).toBeNull();
    expect(traceOf({ traceparent: header, tracestate: 'a=b' })).toBeNull();
  });

  it('passes a trace on unchanged', () => {
    const headers = { traceparent: `00-${TRACE}-${SPAN}-01`, tracestate: 'vendor=1,other=2' };
    const trace = traceOf(headers);
    expect(trace).toEqual({ traceId: TRACE, spanId: SPAN, flags: 1, state: 'vendor=1,other=2' });
    expect(traceHeaders(trace ?? undefined)).toEqual(headers);
  });

  it('drops unknown flags and writes its own version', () => {
    const trace = traceOf({ traceparent: `01-${TRACE}-${SPAN}-ff-future` });
    expect(traceHeaders(trace ?? undefined)).toEqual({ traceparent: `00-${TRACE}-${SPAN}-03` });
  });

  it.each(['a=b\nX-Injected: 1', '', 'a='.padEnd(513, 'b'), ['a=b'], 'a=ü'])(
    'drops the tracestate %p and keeps the trace',
    (tracestate) => {
      const trace = traceOf({ traceparent: `00-${TRACE}-${SPAN}-00`, tracestate });
      expect(traceHeaders(trace ?? undefined)).toEqual({ traceparent: `00-${TRACE}-${SPAN}-00` });
    },
  );

  it('names the same span each time in an unsampled trace without a span', () => {
    const trace = newTrace();
    const { traceparent } = traceHeaders(trace);
    expect(traceparent).toMatch(new RegExp(`^00-${trace.traceId}-[0-9a-f]{16}-00$`));
    expect(traceHeaders(trace)).toEqual({ traceparent });
    expect(traceOf({ ...traceHeaders(newTrace('0'.repeat(16) + '1'.repeat(16))) })).not.toBeNull();
  });

  it('follows asynchronous work', async () => {
    const traceId = newTraceId();
    expect(traceId).toMatch(/^[0-9a-f]{32}$/);
    await withTrace(newTrace(traceId), async () => {
      await Promise.resolve();
      expect(currentTraceId()).toBe(traceId);
      expect(traceHeaders().traceparent).toContain(traceId);
    });
    expect(currentTraceId()).toBeUndefined();
    expect(traceHeaders()).toEqual({});
  });

  it('is absent within withoutTrace', async () => {
    await withTrace(newTrace(), async () => {
      await withoutTrace(async () => {
        await Promise.resolve();
        expect(currentTrace()).toBeUndefined();
      });
      expect(currentTrace()).toBeDefined();
    });
  });
});
