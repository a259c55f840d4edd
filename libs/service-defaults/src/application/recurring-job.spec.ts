import { Logger } from '@nestjs/common';
import { RecurringJob } from './recurring-job';

/** Each run ends when the test says so. */
class Held extends RecurringJob {
  readonly runs: { end: () => void; fail: (error: Error) => void }[] = [];

  constructor() {
    super(1_000);
  }

  run(): Promise<void> {
    return new Promise((end, fail) => this.runs.push({ end, fail }));
  }
}

describe('RecurringJob', () => {
  let job: Held;

  beforeEach(() => {
    jest.useFakeTimers();
    job = new Held();
    job.onApplicationBootstrap();
  });
  afterEach(() => jest.useRealTimers());

  it('runs after every interval, but never while it is running', async () => {
    expect(job.runs).toHaveLength(0);
    await jest.advanceTimersByTimeAsync(2_500);
    expect(job.runs).toHaveLength(1);
    job.runs[0]?.end();
    await jest.advanceTimersByTimeAsync(0);
    expect(job.runs).toHaveLength(2);
  });

  it('runs again after a failure', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue(undefined);
    await jest.advanceTimersByTimeAsync(1_000);
    job.runs[0]?.fail(new Error('no database'));
    await jest.advanceTimersByTimeAsync(1_000);
    expect(job.runs).toHaveLength(2);
    expect(warn).toHaveBeenCalledTimes(1);
  });

  it('ends with the run that is under way, and begins no other', async () => {
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
