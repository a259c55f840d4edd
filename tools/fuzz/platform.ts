import { SERVICES, NEIGHBOURS, PROJECT_ROOTS, type ServiceName } from '#platform/programs.ts';
import { Laboratory, type RunningProgram } from '#platform/laboratory.ts';
import type { PlatformSettings, Variables } from '#platform/environments.ts';

export const SERVICE_NAMES = SERVICES.map(({ service }) => service);

/** The built platform in production mode, on servers of its own. */
export interface Platform {
  readonly laboratory: Laboratory;
  readonly settings: PlatformSettings;
  readonly programs: Readonly<Record<ServiceName, RunningProgram>>;
  readonly neighbours: readonly RunningProgram[];
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
  const laboratory = await Laboratory.open(
    { nodeOptions, projectRoots: build ? PROJECT_ROOTS : [] },
    progress,
  );
  try {
    progress('migrating databases, starting services and neighbours');
    const overrides = Object.fromEntries(SERVICE_NAMES.map((name) => [name, variables(name)]));
    const { settings, programs } = await laboratory.startServices(SERVICE_NAMES, overrides);
    const wanted = NEIGHBOURS.filter(({ name }) => name !== 'identity-provider');
    const neighbours = await Promise.all(wanted.map((one) => laboratory.startNeighbour(one, settings)));
    const all = programs as Record<ServiceName, RunningProgram>;
    return { laboratory, settings, programs: all, neighbours, close: () => laboratory.close() };
  } catch (error) {
    await laboratory.close();
    throw error;
  }
}
