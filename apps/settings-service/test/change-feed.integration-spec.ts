import { TcpProxy, eventually, testSize } from '@platform/testing';
import { sleep } from '@platform/time';
import { buildService, startReplica } from './built-service';
import type { Replica } from './built-service';
import { PARTNER, prepareSettings, settingPath } from './settings-fixture';
import type { SettingsSurroundings } from './settings-fixture';

/** Writes that the test sends. The 100,000 of the goal would take minutes. */
const WRITES = testSize('TEST_FEED_WRITES', { quick: 800, full: 2_000 });
const WRITERS = 8;
const WATCHERS = 4;
/** Concurrent requests of each writer. */
const IN_FLIGHT = 8;
const SETTINGS = 100;
const FROZEN_MS = 4_000;

interface Seen {
  settingName: string;
  /** null after a delete. */
  etag: string | null;
}

interface Recorded {
  setting_name: string;
  operation: string;
  revision: string;
}

describe('watchers of two replicas that are killed, restarted and disconnected from their database', () => {
  let surroundings: SettingsSurroundings;
  let network: TcpProxy;
  let replicas: Replica[] = [];
  const unexpected: string[] = [];
  const start = (): Promise<Replica> => startReplica(surroundings.environment);

  beforeAll(async () => {
    await buildService();
    surroundings = await prepareSettings({
      databaseUrl: async (url) => {
        network = await TcpProxy.start(url);
        return network.url;
      },
    });
    replicas = await Promise.all([start(), start()]);
  }, 120_000);
  afterAll(async () => {
    await Promise.all(replicas.map(({ process }) => process.stop('SIGKILL')));
    await surroundings.close();
    await network.stop();
  });

  /** Sends a request to one of the replicas. Returns null if there is no response, or a 503. */
  async function request(replica: number, path: string, init: RequestInit): Promise<Response | null> {
    try {
      const response = await fetch(`${replicas[replica % 2]!.url}${path}`, init);
      if (response.status === 200 || response.status === 404) return response;
      if (response.status !== 503) unexpected.push(`${response.status} ${await response.text()}`);
    } catch (error) {
      // The replica is down. `instanceof TypeError` would not match, because the error belongs to Node's
      // realm, not Jest's.
      if ((error as Error).name !== 'TypeError') throw error;
    }
    await sleep(50);
    return null;
  }

  async function write(writer: number, count: number): Promise<void> {
    const path = settingPath('Feed', `s${String((writer * 7 + count) % SETTINGS)}`);
    const headers = { ...PARTNER, 'content-type': 'application/json' };
    const body = JSON.stringify({ settingValue: [writer, count] });
    const init = count % 10 === 9 ? { method: 'DELETE', headers: PARTNER } : { method: 'PUT', headers, body };
    const response = await request(writer + count, path, init);
    await response?.arrayBuffer();
  }

  /**
   * Watches until `isDone`, mostly at one replica and sometimes at the other, and records the changes in
   * `seen`.
   */
  async function watch(watcher: number, after: string, seen: Seen[], isDone: () => boolean): Promise<void> {
    for (let count = 0; !isDone(); count += 1) {
      const query = new URLSearchParams({ after, waitSeconds: '2' }).toString();
      const replica = count % 7 === 6 ? watcher + 1 : watcher;
      const response = await request(replica, `/platform/v1/changes?${query}`, { headers: PARTNER });
      if (response === null) continue;
      const page = (await response.json()) as { changes: Seen[]; next: string };
      seen.push(...page.changes);
      after = page.next;
    }
  }

  /** Faults injected one after the other, each after a further fifth of the writes. */
  const faults: (() => Promise<void>)[] = [
    async () => {
      await replicas[0]!.process.stop('SIGKILL');
      replicas[0] = await start();
    },
    async () => {
      network.freeze();
      await sleep(FROZEN_MS);
      await network.restore();
    },
    async () => {
      await replicas[1]!.process.stop('SIGTERM');
      replicas[1] = await start();
    },
    async () => {
      network.cut();
      await Promise.resolve();
    },
  ];

  it(`receive each of ${String(WRITES)} writes once, in commit order per setting`, async () => {
    const { next } = (await (await request(0, '/platform/v1/changes', { headers: PARTNER }))!.json()) as {
      next: string;
    };
    const seenByWatcher = Array.from({ length: WATCHERS }, (): Seen[] => []);
    let [sent, isDone] = [0, false];
    const watching = Promise.all(
      seenByWatcher.map((seen, watcher) => watch(watcher, next, seen, () => isDone)),
    );
    const writing = Array.from({ length: WRITERS * IN_FLIGHT }, async (_, writer) => {
      for (let count = 0; sent < WRITES; count += 1) {
        sent += 1;
        await write(writer, count);
      }
    });
    for (const [index, fault] of faults.entries()) {
      const reached = ((index + 1) * WRITES) / (faults.length + 1);
      await eventually(() => expect(sent).toBeGreaterThanOrEqual(reached), { timeoutMs: 1_000_000 });
      expect(unexpected).toEqual([]);
      await fault();
    }
    await Promise.all(writing);
    const history = await surroundings.database.query<Recorded & object>(
      'SELECT setting_name, operation, revision FROM settings.setting_history ORDER BY history_id',
    );
    const fewestSeen = (): number => Math.min(...seenByWatcher.map((seen) => seen.length));
    await eventually(() => expect(fewestSeen()).toBeGreaterThanOrEqual(history.length), {
      timeoutMs: 60_000,
    });
    isDone = true;
    await watching;
    expect(unexpected).toEqual([]);
    expect(history.length).toBeGreaterThan(WRITES / 2);
    const expected = bySetting(
      history.map(({ setting_name, operation, revision }) => ({
        settingName: setting_name,
        etag: operation === 'delete' ? null : `"${revision}"`,
      })),
    );
    for (const seen of seenByWatcher) expect(bySetting(seen)).toEqual(expected);
  }, 2_400_000);
});

function bySetting(changes: readonly Seen[]): Record<string, (string | null)[]> {
  const found: Record<string, (string | null)[]> = {};
  for (const { settingName, etag } of changes) (found[settingName] ??= []).push(etag);
  return found;
}
