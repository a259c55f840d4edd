import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { WORKSPACE } from '#platform/state-folder.ts';
import { PACED_OPERATIONS } from '#verification/bench/costs/paced-operations.ts';
import { firstLimit, needOf, scaledTo } from './capacity.ts';
import { compareCores, readable } from './comparison.ts';
import { idlePriceOf, measuredPoint, priceOf } from './prices.ts';
import { INPUTS, ratesOf, type Work, type Workload } from './workload.ts';

const workload = (figures: Partial<Workload>): Workload => ({
  facilities: 0,
  users: 0,
  schedules: 0,
  settings: 0,
  watchers: 0,
  signIns: 0,
  passwordShare: 0,
  trustShare: 0,
  refreshes: 0,
  exchanges: 0,
  reads: 0,
  writes: 0,
  settingLists: 0,
  scheduleLists: 0,
  instanceLists: 0,
  days: 365,
  peak: 1,
  ...figures,
});
const ONE_OF_EACH = { auth: 1, settings: 1, task: 1 };
const DAY_SECONDS = 86_400;

describe('what a workload needs', () => {
  it('equals the sum computed by hand from the tables of docs/scaling.md', () => {
    const need = needOf(workload({ facilities: 1e4, schedules: 1e5, days: 335 }));
    expect(need.rows['task.instances']).toBe(365 * 1e5);
    expect(need.gigabytes).toBeCloseTo(13.4, 0);
    expect(need.gigabytesADay).toBeCloseTo(0.04, 2);
  });

  it('grows with the share of passwords', () => {
    const signIns = { users: 1e6, signIns: 1 };
    const without = needOf(workload(signIns), ONE_OF_EACH).cores.auth;
    const half = needOf(workload({ ...signIns, passwordShare: 0.5 }), ONE_OF_EACH).cores.auth;
    expect(half / without).toBeGreaterThan(5);
  });

  it('is not zero without users', () => {
    const { cores } = needOf(workload({}), ONE_OF_EACH);
    expect(cores.settings).toBeCloseTo(idlePriceOf('settings-service').cores.settings, 6);
    expect(Math.min(cores.auth, cores.task, cores.postgresql)).toBeGreaterThan(0);
  });

  it('is less per request while the replica is busy', () => {
    const reads = (perSecond: number): number => {
      const { cores } = needOf(workload({ users: perSecond * DAY_SECONDS, reads: 1 }), ONE_OF_EACH);
      return ((cores.settings - idlePriceOf('settings-service').cores.settings) * 1e6) / perSecond;
    };
    const { service, whenBusy } = priceOf('getSettingValue');
    expect(reads(1) / service).toBeCloseTo(1, 1);
    expect(reads(1e7) / whenBusy.service).toBeLessThan(1);
    expect(reads(5_000)).toBeLessThan(reads(500));
  });

  it('includes a spare replica of each service', () => {
    expect(needOf(workload({})).replicas).toEqual({ auth: 2, settings: 2, task: 2 });
    const { replicas, cores } = needOf(workload({ users: 1e6, signIns: 10, passwordShare: 1 }));
    expect(cores.auth / (replicas.auth - 1)).toBeLessThan(0.6);
    expect(cores.auth / (replicas.auth - 2)).toBeGreaterThan(0.55);
  });

  it('has a nearest limit', () => {
    const need = needOf(workload({ users: 1e6, reads: 10 }));
    const limits = { cores: 1, gigabytes: 1e9, walMegabytesPerSecond: 1e9, messagesPerSecond: 1e9 };
    expect(firstLimit(need, limits)).toEqual({ name: 'PostgreSQL cores', used: need.cores.postgresql });
  });

  it('grows in proportion', () => {
    const scaled = scaledTo(1e9, workload({ facilities: 10, schedules: 1_000 }));
    expect(Math.max(...Object.values(needOf(scaled).rows))).toBeCloseTo(1e9, -2);
  });
});

describe('a price', () => {
  // The bench measured rates and busy processors on the same machine, but in a different run than the costs.
  it.each([
    ['settings-read', 'settings-service', 'getSettingValue'],
    ['settings-write', 'settings-service', 'putSetting'],
    ['token-refresh', 'auth-service', 'refreshToken'],
  ] as const)('of a busy service is within 25 %% of the measurement by %s', (benchmark, contestant, work) => {
    const { rate, service, postgresql } = measuredPoint(benchmark, contestant);
    const { whenBusy } = priceOf(work);
    const deviation = (rate * (whenBusy.service + whenBusy.postgresql)) / 1e6 / (service + postgresql);
    expect(deviation).toBeGreaterThan(0.75);
    expect(deviation).toBeLessThan(1.25);
  });

  it('is refused for an unknown name', () => {
    expect(() => priceOf('noSuchOperation' as Work)).toThrow('docs/ has no figures of noSuchOperation');
    expect(() => idlePriceOf('no such process')).toThrow('docs/ has no figures of no such process');
  });

  it('exists for all work of a workload', () => {
    const rates = ratesOf(workload({}));
    for (const work of Object.keys(rates) as Work[]) expect(priceOf(work).service).toBeGreaterThan(0);
    expect(PACED_OPERATIONS.filter(({ id }) => rates[id as Work] === undefined)).toEqual([]);
  });
});

describe('the comparison with a measured mix', () => {
  const measured = { auth: 0.1, settings: 0.1, task: 0.1, postgresql: 0.1, rabbitmq: 0.1 };
  const failing = (changed: Partial<typeof measured>): string[] =>
    compareCores({ ...measured, ...changed }, measured)
      .filter(({ isWithin, isJudged }) => isJudged && !isWithin)
      .map(({ name }) => name);

  it('tolerates a factor of 1.3 in both directions', () => {
    expect(failing({ auth: 0.129, settings: 0.078 })).toEqual([]);
    expect(failing({ auth: 0.131, settings: 0.076, postgresql: 0.2 })).toEqual([
      'auth-service',
      'settings-service',
      'PostgreSQL',
    ]);
    expect(failing({ task: NaN })).toEqual(['task-service']);
  });

  it('rounds figures to two significant digits', () => {
    expect([0.0312, 12.34, 987_654].map(readable)).toEqual(['0.031', '12', '990,000']);
  });
});

describe('docs/capacity.md', () => {
  it('lists each input with its typical value', () => {
    const page = readFileSync(join(WORKSPACE, 'docs/capacity.md'), 'utf8');
    const rows = page.split('\n').map((line) => line.split('|').map((cell) => cell.trim()));
    const documented = rows.filter(([, first = '']) => first.startsWith('`--'));
    const names = Object.keys(INPUTS).map(
      (name) => `\`--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}\``,
    );
    expect(documented.map(([, name]) => name)).toEqual(names);
    expect(documented.map(([, , typical = '']) => Number(typical.replaceAll(',', '')))).toEqual(
      Object.values(INPUTS).map(([typical]) => typical),
    );
  });
});
