import type { Variables } from '#platform/state-folder.ts';

/** One container as the compose file or a pod asks for it. */
export interface ContainerSpec {
  /** Unique within a run. */
  readonly name: string;
  readonly image: string;
  /** Null: the image's own. */
  readonly command: readonly string[] | null;
  readonly environment: Variables;
  /** Its address, or the container whose network it shares. */
  readonly network: { readonly ip: string } | { readonly container: string };
  readonly isReadOnly?: boolean;
  readonly droppedCapabilities?: readonly string[];
  /** False: neither set-user-id programs nor file capabilities work. */
  readonly mayGainPrivileges?: boolean;
  readonly user?: string;
  readonly memoryBytes?: number;
  readonly cpus?: string;
  readonly ports?: readonly string[];
  readonly tmpfs?: readonly string[];
  readonly volumes?: readonly string[];
}

/** What `podman run` and `docker run` are told of everything but name, network and environment. */
export function runFlags(spec: ContainerSpec): string[] {
  const { droppedCapabilities = [], ports = [], tmpfs = [], volumes = [] } = spec;
  return [
    ...(spec.isReadOnly === true ? ['--read-only'] : []),
    // Podman mounts its own writable folders into a read-only root, where Kubernetes mounts none.
    ...droppedCapabilities.flatMap((name) => ['--cap-drop', name]),
    ...(spec.mayGainPrivileges === false ? ['--security-opt', 'no-new-privileges'] : []),
    ...(spec.user === undefined ? [] : ['--user', spec.user]),
    ...(spec.memoryBytes === undefined ? [] : ['--memory', `${spec.memoryBytes}b`]),
    ...(spec.cpus === undefined ? [] : ['--cpus', spec.cpus]),
    ...ports.flatMap((port) => ['--publish', port]),
    ...tmpfs.flatMap((mount) => ['--tmpfs', mount]),
    ...volumes.flatMap((volume) => ['--volume', volume]),
  ];
}
