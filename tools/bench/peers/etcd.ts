/** The peer of reads and watches of settings: etcd behind its JSON gateway, where it is installed (Debian: etcd-server). */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { findFreePorts } from '#platform/ports.ts';
import { waitUntilReady } from '#platform/supervisor.ts';
import type { PrivateServers } from '#platform/test-platform.ts';
import { answersOk } from '#platform/waiting.ts';

const READY_TIMEOUT_MS = 20_000;
const STAGE = 3;

/** What a benchmark says where there is none. */
export const NO_ETCD = 'etcd is not installed here (Debian: etcd-server): nothing stands beside it';

/** A single node that flushes each write, as it does unless told otherwise; null where it is not installed. */
export async function startEtcd({
  place,
}: PrivateServers): Promise<{ url: string; stop(): Promise<unknown> } | null> {
  if (spawnSync('etcd', ['--version']).error !== undefined) return null;
  const [port = 0, peerPort] = await findFreePorts(2);
  const [url, peerUrl] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${peerPort}`];
  const process = await place.supervisor.spawn({
    name: `etcd-${port}`,
    stage: STAGE,
    command: 'etcd',
    args: [
      ...['--data-dir', join(place.folder, `etcd-${port}`), '--log-level', 'error'],
      ...['--listen-client-urls', url, '--advertise-client-urls', url],
      ...['--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl],
      ...['--initial-cluster', `default=${peerUrl}`],
    ],
    env: { PATH: globalThis.process.env['PATH'] },
    cwd: place.folder,
  });
  await waitUntilReady(process, answersOk(`${url}/health`), READY_TIMEOUT_MS);
  return {
    url,
    stop: () => {
      globalThis.process.kill(process.pid);
      return process.ended;
    },
  };
}

/** Base64, as the gateway wants keys and values. */
export function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
