import { setTimeout as delay } from 'node:timers/promises';
import { SERVICE_NAMES, type ServiceName } from '#platform/programs.ts';
import type { PrivateServers, TestPlatform } from '#platform/test-platform.ts';

/** As in the images. Source: docker/Dockerfile. */
const AS_IN_IMAGES = {
  nodeOptions: ['--max-semi-space-size=8', '--max-old-space-size=320'],
  variables: { MALLOC_ARENA_MAX: '2' },
};
/** After a start: what is compiled is saved, pools and caches fill. */
const SETTLE_SECONDS = 10;

/** A migrated platform of which nothing runs yet. */
export async function openPlatform(servers: PrivateServers): Promise<TestPlatform> {
  const platform = await servers.createPlatform();
  for (const name of SERVICE_NAMES) await platform.migrate(name);
  return platform;
}

/** Starts a replica and waits until it has come to rest. */
export async function startReplica(platform: TestPlatform, name: ServiceName): Promise<void> {
  await platform.startService(name, AS_IN_IMAGES);
  await delay(SETTLE_SECONDS * 1_000);
}

/** One replica of each service, and the neighbours. */
export async function openWholePlatform(servers: PrivateServers): Promise<TestPlatform> {
  const platform = await openPlatform(servers);
  for (const name of SERVICE_NAMES) await startReplica(platform, name);
  await platform.startNeighbours();
  return platform;
}
