import { currentTrace, inSpan, newTrace, openSpan, recordSpansWith, traceOf, withTrace } from '../index';
import type { SpanOptions, TraceContext } from '../index';

interface Noted {
  parent: TraceContext;
  options: SpanOptions;
  failure: string | null;
  hasEnded: boolean;
}

/** Records spans into the returned list. */
function recording(): Noted[] {
  const noted: Noted[] = [];
  recordSpansWith({
    open: (parent, options) => {
      const entry: Noted = { parent, options, failure: null, hasEnded: false };
      noted.push(entry);
      const span = {
        set: () => undefined,
        fail: (errorType: string) => void (entry.failure = errorType),
        end: () => void (entry.hasEnded = true),
      };
      return { traceId: parent.traceId, spanId: String(noted.length).padStart(16, '0'), flags: 1, span };
    },
  });
  return noted;
}

const SPAN: SpanOptions = { name: 'work', kind: 'internal' };

describe('spans', () => {
  afterEach(() => {
    recordSpansWith(null);
  });

  it('are children of the enclosing span, even after an await', async () => {
    const noted = recording();
    await inSpan(SPAN, async (outer) => {
      await Promise.resolve();
      await inSpan(SPAN, (inner) => {
        expect(inner.traceId).toBe(outer.traceId);
        expect(currentTrace()).toBe(inner);
        return Promise.resolve();
      });
      expect(noted[1]).toMatchObject({ parent: outer, hasEnded: true });
      expect(noted[0]?.hasEnded).toBe(false);
    });
    expect(noted.map(({ hasEnded }) => hasEnded)).toEqual([true, true]);
    expect(noted[0]?.parent.spanId).toBeUndefined();
  });

  it('fail with their work and rethrow its error unchanged', async () => {
    const noted = recording();
    const error = new TypeError('with data');
    await expect(inSpan(SPAN, () => Promise.reject(error))).rejects.toBe(error);
    expect(noted).toMatchObject([{ failure: 'TypeError', hasEnded: true }]);
  });

  it('start a new trace with a null parent', () => {
    const noted = recording();
    const around = newTrace();
    withTrace(around, () => openSpan({ ...SPAN, parent: null }));
    expect(noted[0]?.parent.traceId).not.toBe(around.traceId);
  });

  it('are only their parent trace without a recorder', async () => {
    const remote = traceOf({ traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' });
    await inSpan({ ...SPAN, parent: remote }, (trace) => {
      expect(trace).toBe(remote);
      expect(currentTrace()).toBe(remote);
      return Promise.resolve();
    });
  });
});
