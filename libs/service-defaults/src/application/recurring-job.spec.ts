import { Logger } from '@nestjs/common';
import { Metrics } from '../metrics/metrics';
import { RecurringJob } from './recurring-job';

/** A job whose runs end when the test ends them. */
class Held extends RecurringJob {
  readonly runs: { end: () => void; fail: (error: Error) => void }[] = [];

  constructor(metrics: Metrics) {
    super(1_000, metrics);
  }

  run(): Promise<void> {
    return new Promise((end, fail) => this.runs.push({ end, fail }));
  }
}

describe('RecurringJob', () => {
  let job: Held;
  let metrics: Metrics;

  beforeEach(() => {
    jest.useFakeTimers();
    metrics = new Metrics();
    job = new Held(metrics);
    job.onApplicationBootstrap();
  });
  afterEach(() => jest.useRealTimers());

  it('runs after every interval, but never while it is running', async () => {
    expect(job.runs).toHaveLength(0);
    await jest.advanceTimersByTimeAsync(2_500);
    expect(job.runs).toHaveLength(1);
    job.runs[0]?.end();
    await jest.advanceTimersByTimeAsync(0);
    expect(job.runs).toHaveLength(1);
    await jest.advanceTimersByTimeAsync(500);
    expect(job.runs).toHaveLength(2);
  });

  it('does not catch up on intervals that passed during a run', async () => {
    await jest.advanceTimersByTimeAsync(1_000_000);
    expect(job.runs).toHaveLength(1);
    for (let run = 0; run < 3; run += 1) {
      job.runs[run]?.end();
      await jest.advanceTimersByTimeAsync(0);
      expect(job.runs).toHaveLength(run + 1);
      await jest.advanceTimersByTimeAsync(1_000);
    }
  });

  it('runs again after a failure', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue(undefined);
    await jest.advanceTimersByTimeAsync(1_000);
    job.runs[0]?.fail(new Error('no database'));
    await jest.advanceTimersByTimeAsync(1_000);
    expect(job.runs).toHaveLength(2);
    expect(warn).toHaveBeenCalledTimes(1);
  });

  it('counts its runs, and its failures since the last success', async () => {
    jest.spyOn(Logger.prototype, 'warn').mockReturnValue(undefined);
    const failures = 'recurring_job_consecutive_failures{recurring_job="Held"}';
    expect(await metrics.registry.metrics()).toContain(`${failures} 0`);
    for (const run of [0, 1]) {
      await jest.advanceTimersByTimeAsync(1_000);
      job.runs[run]?.fail(new Error('no right to do this'));
    }
    await jest.advanceTimersByTimeAsync(1_000);
    expect(await metrics.registry.metrics()).toContain(`${failures} 2`);
    job.runs[2]?.end();
    await jest.advanceTimersByTimeAsync(0);
    const text = await metrics.registry.metrics();
    expect(text).toContain(`${failures} 0`);
    expect(text).toContain('recurring_job_runs_total{recurring_job="Held",outcome="failed"} 2');
    expect(text).toContain('recurring_job_runs_total{recurring_job="Held",outcome="succeeded"} 1');
  });

  it('waits for the current run on shutdown, and starts no other', async () => {
    await jest.advanceTimersByTimeAsync(3_000);
    let ended = false;
    const shutdown = job.onApplicationShutdown().then(() => (ended = true));
    await jest.advanceTimersByTimeAsync(3_000);
    expect(ended).toBe(false);
    job.runs[0]?.end();
    await shutdown;
    expect(job.runs).toHaveLength(1);
  });
});
