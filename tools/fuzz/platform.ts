import type { PlatformSettings } from '#platform/environments.ts';
import { type Program, SERVICE_NAMES, type ServiceName } from '#platform/programs.ts';
import type { Variables } from '#platform/state-folder.ts';
import { PrivateServers } from '#platform/test-platform.ts';

export { SERVICE_NAMES };

/** The built platform in production mode, on servers of its own. */
export interface Platform {
  readonly servers: PrivateServers;
  readonly settings: PlatformSettings;
  readonly programs: Readonly<Record<ServiceName, Program>>;
  readonly neighbours: readonly Program[];
  close(): Promise<void>;
}

export interface PlatformOptions {
  /** Build first; otherwise what was built before is tested. */
  readonly build: boolean;
  readonly nodeOptions?: readonly string[];
  /** Over what every service would get. */
  readonly variables?: (name: ServiceName) => Variables;
  readonly progress: (line: string) => void;
}

/** Starts everything: PostgreSQL, RabbitMQ, the three services and, but for single sign-on's provider, their neighbours. */
export async function startPlatform(options: PlatformOptions): Promise<Platform> {
  const { build, nodeOptions = [], variables = () => ({}), progress } = options;
  const servers = await PrivateServers.open(
    { nodeOptions, ...(build ? {} : { projectRoots: [] }) },
    progress,
  );
  try {
    progress('migrating databases, starting services and neighbours');
    const platform = await servers.createPlatform();
    await platform.startEverything(Object.fromEntries(SERVICE_NAMES.map((name) => [name, variables(name)])));
    const programs = Object.fromEntries(
      SERVICE_NAMES.map((name) => [name, platform.programAt(platform.url(name))]),
    ) as Record<ServiceName, Program>;
    const neighbours = platform.programs.filter((program) => !Object.values(programs).includes(program));
    return { servers, settings: platform.settings, programs, neighbours, close: () => servers.close() };
  } catch (error) {
    await servers.close();
    throw error;
  }
}
