import type { PrivateServers } from '#platform/test-platform.ts';
import { type Benchmark, closing, type Comparison, type Contestant, percentile } from '../contest.ts';
import { type Operation, OPERATIONS } from '../costs/operations.ts';
import { HttpLoad, type LoadResult } from '../load.ts';

const CONNECTIONS = 32;
const SATURATION_SECONDS = 2;
const LONGEST_SECONDS = 3;
const SHARES = [0.5, 0.8];
const FIGURES = { p50: 0.5, p99: 0.99, 'p99.9': 0.999, longest: 1 } as const;
type Figure = keyof typeof FIGURES;

const IDS = ['getSettingValue', 'putSetting', 'signInWithSharedSecret', 'createSchedule'];

const nameOf = (id: string, share: number, figure: Figure): string => `${id} at ${share * 100} %, ${figure}`;

/** Latency as independent callers see it, at a part of what the service can bear. */
export const latency: Benchmark = {
  id: 'latency',
  title: 'Latency at a fixed rate of requests',
  async prepare(servers) {
    const platform = await servers.startPlatform(['auth', 'settings', 'task']);
    const loads: HttpLoad[] = [];
    const contestants: Contestant[] = [];
    for (const operation of OPERATIONS.filter(({ id }) => IDS.includes(id))) {
      const load = new HttpLoad(platform.url(operation.service), CONNECTIONS);
      loads.push(load);
      contestants.push(...(await contestantsOf(operation, platform, load)));
    }
    return {
      unit: 'ms',
      maxRounds: 2,
      contestants,
      comparisons: IDS.flatMap(comparisonsOf),
      conditions: [
        `${CONNECTIONS} connections; requests begin when they are due, however long those before take, and wait from then on`,
        'saturation is what these connections reach with one request in flight each, measured before',
      ],
      close: closing(...loads, platform),
    };
  },
};

/** One run gives all figures of a rate: the first that is asked for measures, the others find theirs. */
async function contestantsOf(
  { id, prepare }: Operation,
  platform: Awaited<ReturnType<PrivateServers['startPlatform']>>,
  load: HttpLoad,
): Promise<Contestant[]> {
  const next = await prepare(platform, load);
  const saturate = (): Promise<LoadResult> => load.run(SATURATION_SECONDS, (worker) => next(worker, null));
  await saturate();
  const { perSecond } = await saturate();
  return SHARES.flatMap((share) => {
    const found = new Map<Figure, number>();
    const rate = perSecond * share;
    return (Object.keys(FIGURES) as Figure[]).map((figure) => ({
      name: nameOf(id, share, figure),
      does: `${Math.round(rate)} requests/s`,
      measure: async (seconds) => {
        if (!found.has(figure)) {
          const latenciesMs = await load.runAtRate(Math.min(seconds, LONGEST_SECONDS), rate, (request) =>
            next(request % CONNECTIONS, null),
          );
          for (const [each, quantile] of Object.entries(FIGURES))
            found.set(each as Figure, percentile(latenciesMs, quantile));
        }
        const value = found.get(figure)!;
        found.delete(figure);
        return value;
      },
    }));
  });
}

function comparisonsOf(id: string): Comparison[] {
  const p99 = nameOf(id, 0.5, 'p99');
  return [
    { title: `${id} at 50 %, p99 : p50`, of: p99, against: nameOf(id, 0.5, 'p50'), goal: { atMost: 5 } },
    { title: `${id} at 50 %, p99 : 10 ms`, of: p99, against: 10, goal: { atMost: 1 } },
  ];
}
