import { percentile } from '#platform/statistics.ts';
import { type Benchmark, closing, type Comparison, type Contestant } from '../contest.ts';
import { type NextRequest, OPERATIONS } from '../costs/operations.ts';
import { HttpLoad } from '../load.ts';

const CONNECTIONS = 32;
const SATURATION_SECONDS = 2;
const LONGEST_SECONDS = 3;
const SHARES = [0.5, 0.8];
const FIGURES = { p50: 0.5, p99: 0.99, 'p99.9': 0.999, longest: 1 } as const;
type Figure = keyof typeof FIGURES;

const READ = 'getSettingValue';
const IDS = [READ, 'putSetting', 'signInWithSharedSecret', 'createSchedule'];
/**
 * The name of the server for comparison. It reads the same row at the same rate, which shows the latency that
 * the machine and the load generator cause.
 */
const BARE = 'bare server';

const nameOf = (id: string, share: number, figure: Figure): string => `${id} at ${share * 100} %, ${figure}`;

/** The latency for independent callers, at a share of the service's maximum rate. */
export const latency: Benchmark = {
  id: 'latency',
  title: 'Latency at a fixed request rate',
  async prepare(servers) {
    const platform = await servers.startPlatform(['auth', 'settings', 'task']);
    const peer = await servers.startPeer('verification/bench/peers/bare-settings-read.ts', {
      DATABASE_URL: platform.settings.databases.settings.app,
    });
    const bare = new HttpLoad(peer.url, CONNECTIONS);
    const loads = [bare];
    const contestants: Contestant[] = [];
    for (const { id, service, prepare } of OPERATIONS.filter((each) => IDS.includes(each.id))) {
      const load = new HttpLoad(platform.url(service), CONNECTIONS);
      loads.push(load);
      const next = await prepare(platform, load);
      const perSecond = await saturate(load, next);
      contestants.push(...contestantsOf(id, load, next, perSecond));
      if (id !== READ) continue;
      await saturate(bare, next);
      contestants.push(...contestantsOf(BARE, bare, next, perSecond));
    }
    return {
      unit: 'ms',
      maxRounds: 2,
      contestants,
      comparisons: [...IDS.flatMap(comparisonsOf), besideBare],
      conditions: [
        `${CONNECTIONS} connections; the latency of a request counts from the instant at which it is due, even if all connections are busy then`,
        `the ${BARE}, \`node:http\` and \`pg\`, reads the row of ${READ} at the service's rate`,
        'saturation is the rate that these connections reach with one request in flight each; it is measured first',
      ],
      close: closing(...loads, peer, platform),
    };
  },
};

/** Measures the requests per second with all connections busy, after a warm-up. */
async function saturate(load: HttpLoad, next: NextRequest): Promise<number> {
  const run = async (): Promise<number> =>
    (await load.run(SATURATION_SECONDS, (worker) => next(worker, null))).perSecond;
  await run();
  return run();
}

/**
 * Makes a contestant for each figure of each rate. The first `measure` of a rate runs the load and keeps all
 * its figures, so that the other contestants return theirs without another run.
 */
function contestantsOf(id: string, load: HttpLoad, next: NextRequest, perSecond: number): Contestant[] {
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

const besideBare: Comparison = {
  title: `${READ} at 50 %, p99 : ${BARE} at that rate`,
  of: nameOf(READ, 0.5, 'p99'),
  against: nameOf(BARE, 0.5, 'p99'),
  goal: { atMost: 2 },
};
