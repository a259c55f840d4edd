import { Metrics } from '@platform/service-defaults';
import { SYSTEM_CLOCK } from '@platform/time';
import type { WriterSnapshot } from './settled-past.repository';
import { SettledPastService } from './settled-past.service';

const NOON = Date.parse('2026-03-01T12:00:00Z');
const MINUTE = 60_000;

describe('SettledPastService', () => {
  /** The time of the database's clock. */
  let nowMs: number;
  let persistedMs: number;
  let persists: number;
  let polls: number;
  let elapsedMs: number;
  let writers: WriterSnapshot['writers'];
  let metrics: Metrics;
  let settled: SettledPastService;

  beforeEach(() => {
    [nowMs, persistedMs, persists, polls, elapsedMs] = [NOON, 0, 0, 0, 0];
    writers = [];
    metrics = new Metrics();
    const past = {
      readWriters: (): Promise<WriterSnapshot> => {
        polls += 1;
        return Promise.resolve({ now: new Date(nowMs), persistedMs, writers });
      },
      persistSettled: (untilMs: number): Promise<void> => {
        persists += 1;
        persistedMs = Math.max(persistedMs, untilMs);
        return Promise.resolve();
      },
    };
    const clock = { ...SYSTEM_CLOCK, monotonicMs: () => elapsedMs };
    settled = new SettledPastService(past, clock, metrics);
  });

  const wait = (ms: number): Promise<void> => settled.wait(new Date(ms));

  it('stores the settled time in the database once, before a read relies on it', async () => {
    await wait(NOON - 1_000);
    expect(persistedMs).toBeGreaterThan(NOON - 1_000);
    await wait(NOON - 2_000);
    await wait(NOON - 1_000);
    expect([polls, persists]).toEqual([1, 1]);
  });

  it('rejects an instant in the future, even if it was settled while the clock was ahead', async () => {
    nowMs = NOON + 30 * MINUTE;
    await settled.waitForList(undefined);
    nowMs = NOON;
    elapsedMs = 1_001;
    await expect(wait(NOON + 20 * MINUTE)).rejects.toMatchObject({ reason: 'instant-in-future' });
    await expect(wait(NOON - 1)).resolves.toBeUndefined();
    expect(await metrics.registry.metrics()).toMatch(/^settings_settled_ahead_seconds 1800$/m);
  });

  it('does not settle an instant that a writer may have as timestamp after the clock went back', async () => {
    await wait(NOON - 2_000);
    nowMs = NOON + 9_000;
    elapsedMs = 1_001;
    // Already covered by the stored settled time, so nothing more is stored.
    await wait(NOON - 3_000);
    // The clock goes back by four seconds, a transaction sets its timestamp, and one second passes.
    nowMs = NOON + 6_000;
    elapsedMs = 2_002;
    writers = [{ writer: 'w', startedAt: new Date(NOON + 5_000) }];
    const waiting = wait(NOON + 5_015);
    const progress = setInterval(() => (elapsedMs += 1_000), 1);
    await expect(waiting).rejects.toMatchObject({ reason: 'instant-not-settled' });
    clearInterval(progress);
    expect(persistedMs).toBeLessThan(NOON + 5_000);
  });

  it('discards the settled time if the database lost what it stored', async () => {
    await wait(NOON - 1);
    // A failover to a server that lacks the stored time, and whose clock is behind.
    [nowMs, persistedMs] = [NOON - 2 * MINUTE, 0];
    elapsedMs = 1_001;
    await expect(wait(NOON - 1)).rejects.toMatchObject({ reason: 'instant-in-future' });
    await wait(NOON - 3 * MINUTE);
    expect(persistedMs).toBeGreaterThan(NOON - 3 * MINUTE);
    expect(persistedMs).toBeLessThanOrEqual(NOON - 2 * MINUTE);
  });
});
