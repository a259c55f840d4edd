/**
 * Measures reads from the memory of a watching client, and from a plain Map. With a service at SETTINGS_URL
 * or an etcd at ETCD_URL it also measures the time from the response of a write to the callback of a watcher.
 */
import { SettingsClient } from '@platform/settings-client';
import { callsPerSecond, serveMeasurements } from './serve-measurements';

const NAMES = Array.from({ length: 1_000 }, (_none, index) => `Name-${index}`);
const SUBSYSTEM = 'Bench';
/**
 * Maximum of the random pause between two writes, in ms. The pause keeps the writes from synchronising with
 * the polls of the service.
 */
const MAX_PAUSE_MS = 200;

/** A watching client with a stubbed service: every setting is 1, and nothing changes. */
async function watchStub() {
  const respond = (url: string, signal: AbortSignal): Promise<Response> => {
    const headers = { 'content-type': 'application/json', etag: '"1"' };
    if (url.endsWith('/value')) return Promise.resolve(new Response('1', { headers }));
    if (!url.includes('after=')) return Promise.resolve(Response.json({ changes: [], next: '1' }));
    const waitMs = 1_000 * Number(new URL(url).searchParams.get('waitSeconds'));
    return new Promise((resolve, reject) => {
      setTimeout(() => resolve(Response.json({ changes: [], next: '1' })), waitMs).unref();
      signal.addEventListener('abort', () => reject(signal.reason as Error));
    });
  };
  const fetch = ((url: string, init: RequestInit) => respond(url, init.signal!)) as typeof globalThis.fetch;
  const watch = new SettingsClient({ baseUrl: 'http://stub', token: 't', fetch }).watch();
  await watch.ready;
  for (const name of NAMES) await watch.getValue(SUBSYSTEM, name);
  return watch;
}

/** A store whose writes are watched. */
interface Watched {
  /** Resolves when the watch has begun. @param onVersion called with the version of each change */
  watch(onVersion: (version: string | null) => void): Promise<unknown>;
  /** Writes a value and returns its version. */
  write(value: number): Promise<string>;
}

function ourService(baseUrl: string, token: string): Watched {
  const client = new SettingsClient({ baseUrl, token });
  return {
    watch: (onVersion) =>
      client.watch({ subsystemName: SUBSYSTEM, onChange: ({ etag }) => onVersion(etag) }).ready,
    write: async (value) => (await client.putSetting(SUBSYSTEM, 'latency', value)).etag,
  };
}

function etcd(url: string): Watched {
  const key = btoa(`${SUBSYSTEM}/latency`);
  const post = (path: string, body: object): Promise<Response> =>
    fetch(`${url}${path}`, { method: 'POST', body: JSON.stringify(body) });
  const follow = async (response: Response, onVersion: (version: string) => void): Promise<void> => {
    let rest = '';
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop()!;
      for (const line of lines) {
        const { result } = JSON.parse(line) as { result: { events?: { kv: { mod_revision: string } }[] } };
        for (const { kv } of result.events ?? []) onVersion(kv.mod_revision);
      }
    }
  };
  return {
    // The response begins when the watch begins.
    watch: async (onVersion) => void follow(await post('/v3/watch', { create_request: { key } }), onVersion),
    write: async (value) => {
      const response = await post('/v3/kv/put', { key, value: btoa(String(value)) });
      return ((await response.json()) as { header: { revision: string } }).header.revision;
    },
  };
}

/** Returns a measurement of a watcher's latencies, sorted ascending. */
function watchLatency(watched: Watched): (seconds: number) => Promise<number[]> {
  let onVersion = (_version: string | null): void => undefined;
  const ready = watched.watch((version) => onVersion(version));
  const measureOneMs = async (value: number): Promise<number> => {
    const receivedAtMs = new Map<string | null, number>();
    let wake = (): void => undefined;
    onVersion = (version) => {
      receivedAtMs.set(version, performance.now());
      wake();
    };
    const version = await watched.write(value);
    const writtenAtMs = performance.now();
    while (!receivedAtMs.has(version)) await new Promise<void>((resolve) => (wake = resolve));
    return Math.max(0, receivedAtMs.get(version)! - writtenAtMs);
  };
  return async (seconds) => {
    await ready;
    const samples: number[] = [];
    for (const endsAtMs = performance.now() + seconds * 1_000; performance.now() < endsAtMs;) {
      samples.push(await measureOneMs(samples.length));
      await new Promise((resolve) => setTimeout(resolve, Math.random() * MAX_PAUSE_MS));
    }
    return samples.sort((left, right) => left - right);
  };
}

async function main(): Promise<void> {
  const watch = await watchStub();
  const plain = new Map(NAMES.map((name) => [name, 1]));
  const expectOne = (value: unknown): void => {
    if (value !== 1) throw new Error('a value is missing');
  };
  const { SETTINGS_URL, SETTINGS_TOKEN = '', ETCD_URL } = process.env;
  const ours = SETTINGS_URL === undefined ? null : watchLatency(ourService(SETTINGS_URL, SETTINGS_TOKEN));
  const theirs = ETCD_URL === undefined ? null : watchLatency(etcd(ETCD_URL));
  const at = (share: number, latency: typeof ours) => async (seconds: number) => {
    const samples = await latency!(seconds);
    return samples[Math.ceil(samples.length * share) - 1] ?? NaN;
  };
  serveMeasurements({
    peek: (seconds) =>
      callsPerSecond(seconds, (count) => expectOne(watch.peek(SUBSYSTEM, NAMES[count % NAMES.length]!))),
    'plain Map': (seconds) =>
      callsPerSecond(seconds, (count) => expectOne(plain.get(NAMES[count % NAMES.length]!))),
    getValue: (seconds) =>
      callsPerSecond(seconds, (count) => watch.getValueOrNull(SUBSYSTEM, NAMES[count % NAMES.length]!)),
    p50: at(0.5, ours),
    p99: at(0.99, ours),
    'etcd p50': at(0.5, theirs),
    'etcd p99': at(0.99, theirs),
  });
}

void main();
