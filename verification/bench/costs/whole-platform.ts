import { setTimeout as delay } from 'node:timers/promises';
import { SERVICE_NAMES, type ServiceName } from '#platform/programs.ts';
import type { PrivateServers, TestPlatform } from '#platform/test-platform.ts';

/** The Node options and variables of the images. Source: docker/Dockerfile. */
const IMAGE_SETTINGS = {
  nodeOptions: ['--max-semi-space-size=8', '--max-old-space-size=320'],
  variables: { MALLOC_ARENA_MAX: '2' },
};
/** Wait after a start, in which compiled code is saved and pools and caches fill. */
const SETTLE_SECONDS = 10;

/** Creates a platform and migrates its databases. Starts no programs. */
export async function openPlatform(servers: PrivateServers): Promise<TestPlatform> {
  const platform = await servers.createPlatform();
  for (const name of SERVICE_NAMES) await platform.migrate(name);
  return platform;
}

/** Starts a replica and waits until it is idle. */
export async function startReplica(platform: TestPlatform, name: ServiceName): Promise<void> {
  await platform.startService(name, IMAGE_SETTINGS);
  await delay(SETTLE_SECONDS * 1_000);
}

/** Creates a platform and starts one replica of each service, and the neighbours. */
export async function openWholePlatform(servers: PrivateServers): Promise<TestPlatform> {
  const platform = await openPlatform(servers);
  for (const name of SERVICE_NAMES) await startReplica(platform, name);
  await platform.startNeighbours();
  return platform;
}
