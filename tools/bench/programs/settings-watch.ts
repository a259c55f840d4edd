/** Reads from the memory of a watching client beside a plain Map; and, with a service at SETTINGS_URL, the time from the response of a
 *  write to the callback of a watcher. */
import { SettingsClient } from '@platform/settings-client';
import { callsPerSecond, serveMeasurements } from './serve-measurements';

const NAMES = Array.from({ length: 1_000 }, (_none, index) => `Name-${index}`);
const SUBSYSTEM = 'Bench';
/** The longest pause between two writes: writes must not fall into step with the looks of the service. */
const MAX_PAUSE_MS = 200;

/** A client of a service that is not there: every setting is 1, nothing changes. */
async function watchOfNobody() {
  const respond = (url: string, signal: AbortSignal): Promise<Response> => {
    const headers = { 'content-type': 'application/json', etag: '"1"' };
    if (url.endsWith('/value')) return Promise.resolve(new Response('1', { headers }));
    if (!url.includes('after=')) return Promise.resolve(Response.json({ changes: [], next: '1' }));
    return new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error));
    });
  };
  const fetch = ((url: string, init: RequestInit) => respond(url, init.signal!)) as typeof globalThis.fetch;
  const watch = new SettingsClient({ baseUrl: 'http://nobody', token: 't', fetch }).watch();
  await watch.ready;
  for (const name of NAMES) await watch.getValue(SUBSYSTEM, name);
  return watch;
}

/** A way to measure the wait of a watcher, over and over. */
function watchLatency(baseUrl: string, token: string): (seconds: number) => Promise<number[]> {
  const client = new SettingsClient({ baseUrl, token });
  let heard = (_etag: string | null): void => undefined;
  const watch = client.watch({ subsystemName: SUBSYSTEM, onChange: ({ etag }) => heard(etag) });
  const oneMs = async (value: number): Promise<number> => {
    const told = new Map<string | null, number>();
    let wake = (): void => undefined;
    heard = (etag) => {
      told.set(etag, performance.now());
      wake();
    };
    const { etag } = await client.putSetting(SUBSYSTEM, 'latency', value);
    const writtenAtMs = performance.now();
    while (!told.has(etag)) await new Promise<void>((resolve) => (wake = resolve));
    return Math.max(0, told.get(etag)! - writtenAtMs);
  };
  return async (seconds) => {
    await watch.ready;
    const samples: number[] = [];
    for (const endsAtMs = performance.now() + seconds * 1_000; performance.now() < endsAtMs;) {
      samples.push(await oneMs(samples.length));
      await new Promise((resolve) => setTimeout(resolve, Math.random() * MAX_PAUSE_MS));
    }
    return samples.sort((left, right) => left - right);
  };
}

async function main(): Promise<void> {
  const watch = await watchOfNobody();
  const plain = new Map(NAMES.map((name) => [name, 1]));
  const expectOne = (value: unknown): void => {
    if (value !== 1) throw new Error('a value is missing');
  };
  const { SETTINGS_URL, SETTINGS_TOKEN } = process.env;
  const latency = SETTINGS_URL === undefined ? null : watchLatency(SETTINGS_URL, SETTINGS_TOKEN ?? '');
  const at = (share: number) => async (seconds: number) => {
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
    p50: at(0.5),
    p99: at(0.99),
  });
}

void main();
