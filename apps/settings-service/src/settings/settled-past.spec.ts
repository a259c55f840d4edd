import { Metrics } from '@platform/service-defaults';
import { SYSTEM_CLOCK } from '@platform/time';
import type { PastLook } from './settled-past.repository';
import { SettledPastService } from './settled-past.service';

const NOON = Date.parse('2026-03-01T12:00:00Z');
const MINUTE = 60_000;

describe('the settled past', () => {
  /** What the database's clock says. */
  let nowMs: number;
  let keptMs: number;
  let keeps: number;
  let looks: number;
  let elapsedMs: number;
  let writers: PastLook['writers'];
  let metrics: Metrics;
  let settled: SettledPastService;

  beforeEach(() => {
    [nowMs, keptMs, keeps, looks, elapsedMs] = [NOON, 0, 0, 0, 0];
    writers = [];
    metrics = new Metrics();
    const past = {
      look: (): Promise<PastLook> => {
        looks += 1;
        return Promise.resolve({ now: new Date(nowMs), keptMs, writers });
      },
      keepSettled: (untilMs: number): Promise<void> => {
        keeps += 1;
        keptMs = Math.max(keptMs, untilMs);
        return Promise.resolve();
      },
    };
    const clock = { ...SYSTEM_CLOCK, monotonicMs: () => elapsedMs };
    settled = new SettledPastService(past, clock, metrics);
  });

  const wait = (ms: number): Promise<void> => settled.wait(new Date(ms));

  it('is kept in the database before anybody relies on it, once', async () => {
    await wait(NOON - 1_000);
    expect(keptMs).toBeGreaterThan(NOON - 1_000);
    await wait(NOON - 2_000);
    await wait(NOON - 1_000);
    expect([looks, keeps]).toEqual([1, 1]);
  });

  it('does not reach beyond a clock that was ahead and was set right', async () => {
    nowMs = NOON + 30 * MINUTE;
    await settled.waitForList(undefined);
    nowMs = NOON;
    elapsedMs = 1_001;
    await expect(wait(NOON + 20 * MINUTE)).rejects.toMatchObject({ reason: 'instant-in-future' });
    await expect(wait(NOON - 1)).resolves.toBeUndefined();
    expect(await metrics.registry.metrics()).toMatch(/^settings_settled_ahead_seconds 1800$/m);
  });

  it('does not reach the instant that a writer may have noted after the clock went back', async () => {
    await wait(NOON - 2_000);
    nowMs = NOON + 9_000;
    elapsedMs = 1_001;
    // Nothing more is kept for it.
    await wait(NOON - 3_000);
    // The clock goes back by four seconds, and a transaction notes an instant in them.
    nowMs = NOON + 6_000;
    elapsedMs = 2_002;
    writers = [{ writer: 'w', startedAt: new Date(NOON + 5_000) }];
    const told = wait(NOON + 5_015);
    const progress = setInterval(() => (elapsedMs += 1_000), 1);
    await expect(told).rejects.toMatchObject({ reason: 'instant-not-settled' });
    clearInterval(progress);
    expect(keptMs).toBeLessThan(NOON + 5_000);
  });

  it('is forgotten where the database lost what it kept', async () => {
    await wait(NOON - 1);
    // A failover to a server that did not have it, and whose clock is behind.
    [nowMs, keptMs] = [NOON - 2 * MINUTE, 0];
    elapsedMs = 1_001;
    await expect(wait(NOON - 1)).rejects.toMatchObject({ reason: 'instant-in-future' });
    await wait(NOON - 3 * MINUTE);
    expect(keptMs).toBeGreaterThan(NOON - 3 * MINUTE);
    expect(keptMs).toBeLessThanOrEqual(NOON - 2 * MINUTE);
  });
});
