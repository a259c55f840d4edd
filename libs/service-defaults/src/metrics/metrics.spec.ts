import { Metrics } from '../index';
import { HttpDurations } from './route-durations';

describe('Metrics', () => {
  it('gives the same metric for the same name', () => {
    const metrics = new Metrics();
    expect(metrics.counter('fires_total', 'Fires.')).toBe(metrics.counter('fires_total', 'Fires.'));
    expect(metrics.gauge('depth', 'Depth.')).toBe(metrics.gauge('depth', 'Depth.'));
    expect(metrics.histogram('wait_seconds', 'Wait.')).toBe(metrics.histogram('wait_seconds', 'Wait.'));
  });
});

describe('HttpDurations', () => {
  it('exposes a Prometheus histogram by route and status', async () => {
    const { registry } = new Metrics();
    const durations = new HttpDurations();
    durations.register(registry);
    const route = durations.route('GET', '/settings/:name');
    for (const milliseconds of [0.5, 1, 30, 60_000]) route.observe(200, milliseconds);
    route.observe(503, 1);
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
