import { Logger } from '@nestjs/common';
import { Metrics } from '../index';
import type { Sample } from '../index';
import { requestDurations } from '../application/request-hooks';

describe('Metrics', () => {
  it('returns the same metric for the same name', () => {
    const metrics = new Metrics();
    expect(metrics.counter('fires_total', 'Fires.')).toBe(metrics.counter('fires_total', 'Fires.'));
    expect(metrics.gauge('depth', 'Depth.')).toBe(metrics.gauge('depth', 'Depth.'));
    expect(metrics.histogram('wait_seconds', 'Wait.')).toBe(metrics.histogram('wait_seconds', 'Wait.'));
  });
});

describe('a sampled gauge', () => {
  const sampled = (...readers: (() => Sample<'store'>[] | Promise<Sample<'store'>[]>)[]) => {
    const metrics = new Metrics();
    for (const read of readers) metrics.sampledGauge('depth', 'Depth.', ['store'], read);
    metrics.counter('fires_total', 'Fires.').inc();
    return metrics;
  };
  const depth = (store: string, value: number): Sample<'store'> => ({ labels: { store }, value });

  it('calls all its readers on each scrape', async () => {
    let value = 1;
    const { registry } = sampled(
      () => [depth('a', value)],
      () => Promise.resolve([depth('b', 7)]),
    );
    expect(await registry.metrics()).toContain('depth{store="a"} 1\ndepth{store="b"} 7\n');
    value = 2;
    expect(await registry.metrics()).toContain('depth{store="a"} 2\n');
  });

  it('has no value while its reader fails, without affecting other metrics', async () => {
    jest.spyOn(Logger.prototype, 'warn').mockReturnValue(undefined);
    let down = false;
    const { registry } = sampled(() => {
      if (down) throw new Error('down');
      return [depth('a', 1)];
    });
    expect(await registry.metrics()).toContain('depth{store="a"} 1');
    down = true;
    const text = await registry.metrics();
    expect(text).not.toContain('depth{');
    expect(text).toContain('fires_total 1');
  });

  it('without labels is absent too, not 0', async () => {
    jest.spyOn(Logger.prototype, 'warn').mockReturnValue(undefined);
    const metrics = new Metrics();
    metrics.sampledGauge('age_seconds', 'Age.', [], () => Promise.reject(new Error('down')));
    expect(await metrics.registry.metrics()).not.toMatch(/^age_seconds/m);
  });

  it('delays a scrape by 2 s at most', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue(undefined);
    jest.useFakeTimers();
    const { registry } = sampled(() => new Promise(() => undefined));
    const scrape = registry.metrics();
    await jest.advanceTimersByTimeAsync(2_000);
    expect(await scrape).not.toContain('depth{');
    expect(warn).toHaveBeenCalledWith(expect.stringContaining('no answer within 2000 ms'));
    jest.useRealTimers();
  });
});

describe('requestDurations', () => {
  it('exposes a Prometheus histogram by route and status', async () => {
    const metrics = new Metrics();
    const { registry } = metrics;
    const durations = requestDurations(metrics);
    const route = { method: 'GET', route: '/settings/:name' };
    for (const seconds of [0.0005, 0.001, 0.03, 60]) durations.observe({ ...route, status: 200 }, seconds);
    durations.observe({ ...route, status: 503 }, 0.001);
    const text = await registry.metrics();
    const labels = 'method="GET",route="/settings/:name",status="200"';
    expect(text).toContain('# TYPE http_request_duration_seconds histogram');
    expect(text).toContain(`http_request_duration_seconds_bucket{le="0.001",${labels}} 2`);
    expect(text).toContain(`http_request_duration_seconds_bucket{le="0.05",${labels}} 3`);
    expect(text).toContain(`http_request_duration_seconds_bucket{le="10",${labels}} 3`);
    expect(text).toContain(`http_request_duration_seconds_bucket{le="+Inf",${labels}} 4`);
    expect(text).toContain(`http_request_duration_seconds_sum{${labels}} 60.0315`);
    expect(text).toContain(
      'http_request_duration_seconds_count{method="GET",route="/settings/:name",status="503"} 1',
    );
  });
});
