import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { FriendlyError } from '#platform/errors.ts';
import { findOnPath } from '#platform/processes.ts';
import { cacheFolder } from '#platform/state-folder.ts';
import { FAKETIME } from './clocks.ts';

const run = promisify(execFile);
const RELEASE = 'trixie';
const PACKAGES =
  'etcd-server,rabbitmq-server,postgresql-17,patroni,python3-etcd,haproxy,pgbouncer,libfaketime';
const BOOTSTRAP_TIMEOUT_MS = 600_000;
/** Variable that tells this program that it runs inside its own namespaces. */
const MARK = 'CHAOS_WORLD';

export const MACHINES = [1, 2, 3] as const;
export type Machine = (typeof MACHINES)[number];
/** The address of services and haproxy on the bridge. */
export const HOST_ADDRESS = '10.77.0.254';

export function addressOf(machine: Machine): string {
  return `10.77.0.${machine}`;
}

/** Converts the number of a leader to a machine. @throws {Error} if it is not the number of a machine */
export function machineOf(number: unknown): Machine {
  const found = MACHINES.find((machine) => machine === Number(number));
  if (found === undefined) throw new Error('there is no leader');
  return found;
}

/** The root folder of the private Debian from which engines start. Its name depends on the packages. */
export function debianRoot(): string {
  const packages = createHash('sha256').update(PACKAGES).digest('hex').slice(0, 8);
  return join(cacheFolder(), `cluster-${RELEASE}-${packages}`);
}

export function isInNamespaces(): boolean {
  return process.env[MARK] === '1';
}

/**
 * Sets the namespaces up, then runs the program. Each machine is a network namespace on one bridge. The
 * mounts vanish with the last process.
 */
const SET_UP = `
set -e
root=$1; shift
# Later mounts below /run must be visible in the private Debian too.
mount -t tmpfs -o mode=755 tmpfs /run
mount --make-shared /run
mkdir /run/netns
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount --rbind /run "$root/run"
ip link set lo up
ip link add bridge type bridge
ip address add ${HOST_ADDRESS}/24 dev bridge
ip link set bridge up
for machine in ${MACHINES.join(' ')}; do
  ip netns add "m$machine"
  ip link add "wire$machine" type veth peer name eth0 netns "m$machine"
  ip link set "wire$machine" master bridge up
  ip -n "m$machine" address add "10.77.0.$machine/24" dev eth0
  ip -n "m$machine" link set eth0 up
  ip -n "m$machine" link set lo up
done
# Not exec: the first process of the namespace must stay, because it reaps orphans.
"$@" && exit 0 || exit $?
`;

/**
 * Runs this program again in its own process, mount and network namespaces. All their processes end when
 * either program ends. The first run fetches a Debian. Returns the exit code.
 * @throws {FriendlyError} if not root, or if a required program is missing
 */
export async function runInNamespaces(report: (line: string) => void): Promise<number> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    throw new FriendlyError(
      '--cluster creates network namespaces and a private Debian: run it on Linux, as root.',
    );
  for (const program of ['debootstrap', 'ip', 'unshare', 'setpriv'])
    if (findOnPath(program) === null) throw missing(program);
  if (!existsSync(FAKETIME)) throw missing('libfaketime');
  await makeRoot(report);
  const inside = ['--mount', '--net', '--pid', '--fork', '--kill-child', '--mount-proc'];
  const self = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  const child = spawn(
    'setpriv',
    ['--pdeathsig', 'KILL', 'unshare', ...inside, 'bash', '-c', SET_UP, 'bash', debianRoot(), ...self],
    { stdio: 'inherit', env: { ...process.env, [MARK]: '1', TMPDIR: '/run' } },
  );
  const [exitCode] = (await once(child, 'exit')) as [number | null];
  return exitCode ?? 1;
}

function missing(what: string): FriendlyError {
  return new FriendlyError(`--cluster needs ${what}: .ci/install cluster installs it.`);
}

async function makeRoot(report: (line: string) => void): Promise<void> {
  const root = debianRoot();
  if (existsSync(root)) return;
  report(`fetching Debian ${RELEASE} with ${PACKAGES.replaceAll(',', ', ')}; later runs reuse it`);
  const partial = `${root}.partial`;
  rmSync(partial, { recursive: true, force: true });
  mkdirSync(dirname(root), { recursive: true });
  const options = { timeout: BOOTSTRAP_TIMEOUT_MS, maxBuffer: 2 ** 26 };
  await run('debootstrap', ['--variant=minbase', `--include=${PACKAGES}`, RELEASE, partial], options).catch(
    (cause: unknown) => {
      throw new FriendlyError(`Debian ${RELEASE} could not be fetched: ${String(cause)}`, { cause });
    },
  );
  rmSync(join(partial, 'var/cache/apt'), { recursive: true, force: true });
  renameSync(partial, root);
}
