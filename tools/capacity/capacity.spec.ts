import { firstLimit, needOf, scaledTo } from './capacity.ts';
import { measuredPoint, requestCard } from './cards.ts';

const NOTHING = {
  ...{ facilities: 0, users: 0, schedules: 0, settings: 0, signIns: 0, refreshes: 0 },
  ...{ reads: 0, writes: 0, days: 365, peak: 1 },
};
const DAY_SECONDS = 86_400;

describe('what a workload needs', () => {
  // Measured by the bench, in another run of the same machine than the costs: at this rate so many processors were busy.
  it.each([
    ['settings-read', 'settings-service', { reads: 1 }],
    ['settings-write', 'settings-service', { writes: 1 }],
    ['token-refresh', 'auth-service', { refreshes: 1 }],
  ])('is what %s measured, within a quarter', (benchmark, contestant, each) => {
    const { rate, service, postgresql } = measuredPoint(benchmark, contestant);
    const { cores } = needOf({ ...NOTHING, ...each, users: rate * DAY_SECONDS });
    const deviation = (cores.auth + cores.settings + cores.postgresql) / (service + postgresql);
    expect(deviation).toBeGreaterThan(0.75);
    expect(deviation).toBeLessThan(1.25);
  });

  it('is what the tables of docs/scaling.md give by hand', () => {
    const { rows, gigabytes } = needOf({ ...NOTHING, facilities: 1e4, schedules: 1e5, days: 335 });
    expect(rows['task.instances']).toBe(365 * 1e5);
    expect(gigabytes).toBeCloseTo(13.4, 0);
  });

  it('has a nearest limit', () => {
    const need = needOf({ ...NOTHING, users: 1e6, reads: 10 });
    const limits = { cores: 1, gigabytes: 1e9, walMegabytesPerSecond: 1e9, messagesPerSecond: 1e9 };
    expect(firstLimit(need, limits)).toEqual({ name: 'PostgreSQL cores', used: need.cores.postgresql });
  });

  it('grows in proportion', () => {
    const workload = { ...NOTHING, facilities: 10, schedules: 1_000 };
    expect(Math.max(...Object.values(needOf(scaledTo(1e9, workload)).rows))).toBeCloseTo(1e9, -2);
  });
});

describe('a card', () => {
  it('is asked for by a name that the page has', () => {
    expect(() => requestCard('noSuchOperation')).toThrow('docs/ has no figures of noSuchOperation');
  });
});
