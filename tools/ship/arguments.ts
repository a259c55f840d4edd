import { commandLine, someOf } from '#platform/command-line.ts';
import { ENGINE_NAMES, type EngineName } from './engine.ts';

export interface ShipArguments {
  /** The first of these that works is used. */
  readonly engines: readonly EngineName[];
  /** The base image of every image; null: the Dockerfile's, or one made here where no registry is reachable. */
  readonly base: string | null;
  /** Leaves out what takes longest. */
  readonly isShort: boolean;
}

const DESCRIPTION =
  'Builds every image, starts the containers of docker/compose.yaml and walks the tour on them, then plays the overlays of k8s/: ' +
  'first installation, two replicas of each service, a rolling replacement under load. Removes what it started. Ends with 1 when ' +
  'anything is not as documented, and when containers cannot run here.';

/** @throws {ArgumentsError} on an unknown flag or an impossible value */
export function parseShipArguments(args: readonly string[]): ShipArguments {
  const { engine, base, short } = commandLine('npm run ship', '[-- flags]', DESCRIPTION)
    .option('--engine <podman,docker>', 'tries these, in this order', someOf(ENGINE_NAMES), [...ENGINE_NAMES])
    .option(
      '--base <image>',
      'the base image (the Dockerfile’s; one made from Debian packages where no registry answers)',
    )
    .option('--short', 'leaves out the overlay for one machine')
    .parse(args, { from: 'user' })
    .opts<{ engine: EngineName[]; base?: string; short?: true }>();
  return { engines: engine, base: base ?? null, isShort: short === true };
}
