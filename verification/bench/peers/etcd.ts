/**
 * The peer for reads and watches of settings: etcd behind its JSON gateway, if installed (Debian:
 * etcd-server).
 */
import { join } from 'node:path';
import { findFreePorts } from '#platform/ports.ts';
import type { PrivateServers } from '#platform/test-platform.ts';
import { type Installed, isInstalled, startInstalled } from './installed.ts';

/** The condition that a benchmark lists if etcd is not installed. */
export const NO_ETCD = 'etcd is not installed here (Debian: etcd-server): nothing stands beside it';

/** Starts a single node, which by default flushes each write. Null if etcd is not installed. */
export async function startEtcd(servers: PrivateServers): Promise<Installed | null> {
  if (!isInstalled('etcd')) return null;
  const [port = 0, peerPort] = await findFreePorts(2);
  const [url, peerUrl] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${peerPort}`];
  return startInstalled(servers, {
    command: 'etcd',
    port,
    readyPath: '/health',
    args: [
      '--data-dir',
      join(servers.place.folder, `etcd-${port}`),
      '--log-level',
      'error',
      '--listen-client-urls',
      url,
      '--advertise-client-urls',
      url,
      '--listen-peer-urls',
      peerUrl,
      '--initial-advertise-peer-urls',
      peerUrl,
      '--initial-cluster',
      `default=${peerUrl}`,
    ],
  });
}

/** Encodes a key or value in Base64 for the gateway. */
export function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
