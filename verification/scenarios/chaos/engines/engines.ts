import { execFile } from 'node:child_process';
import { chownSync, mkdirSync, readFileSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { listPids, networkOf, readProc } from '#platform/proc.ts';
import { findProcessStart, trySignal } from '#platform/processes.ts';
import { openTemporaryPlace, type TemporaryPlace } from '#platform/private-servers.ts';
import { queryAt } from '#platform/postgresql.ts';
import { build, PROJECT_ROOTS, SERVICE_NAMES, type ServiceName } from '#platform/programs.ts';
import { parsePasswd, type RunAs } from '#platform/run-as.ts';
import { type ServerAddresses, TestPlatform } from '#platform/test-platform.ts';
import { respondsOk, eventually } from '#platform/waiting.ts';
import { fetchJson } from './fetch-json.ts';
import { Brokers } from './brokers.ts';
import { StepClock } from './clocks.ts';
import {
  BROKER_USER,
  brokerConfiguration,
  brokerEnvironment,
  etcdArguments,
  haproxyConfiguration,
  patroniConfiguration,
  POOLER_PORT,
  poolerConfiguration,
  PORTS,
} from './configuration.ts';
import { addressOf, debianRoot, type Machine, machineOf, MACHINES, HOST_ADDRESS } from './namespaces.ts';

const run = promisify(execFile);

export type Engine = 'database' | 'broker' | 'etcd';

/**
 * Names of each engine's processes, in the order in which they are killed: Patroni first, because Patroni
 * would react to the end of its PostgreSQL.
 */
const PROCESSES: Readonly<Record<Engine, readonly string[]>> = {
  database: ['patroni', 'postgres', 'pg_basebackup', 'pg_rewind', 'initdb'],
  broker: ['beam.smp'],
  etcd: ['etcd'],
};
const USERS: Readonly<Record<Engine, string>> = { database: 'postgres', broker: 'rabbitmq', etcd: 'etcd' };
const ENGINES = Object.keys(PROCESSES) as readonly Engine[];
/** Size of the disk of each engine. */
const DISK_SIZE = '768m';
const HEALTHY_TIMEOUT_MS = 120_000;
const RESTART_DELAY_MS = 2_000;

/**
 * Three machines, each with three engines: a RabbitMQ node, a PostgreSQL under Patroni and an etcd member. A
 * haproxy runs before them.
 */
export class Engines implements ServerAddresses {
  readonly place: TemporaryPlace;
  readonly #dist: string;
  readonly #hasPooler: boolean;
  readonly brokers: Brokers;
  /** Engines that must run, by name. The symbol identifies the last start. */
  readonly #running = new Map<string, symbol>();
  readonly #clocks = new Map(MACHINES.map((machine) => [machine, new StepClock(`m${machine}`)]));

  private constructor(place: TemporaryPlace, dist: string, hasPooler: boolean) {
    this.place = place;
    this.#dist = dist;
    this.#hasPooler = hasPooler;
    this.brokers = new Brokers(this.#password);
  }

  /**
   * Starts all engines. Must run inside `runInNamespaces`.
   * @param dist folder of the build under test. `dist` itself is built first.
   * @param hasPooler true: replicas `a` connect to PostgreSQL through a PgBouncer
   */
  static async open(dist: string, hasPooler: boolean, progress: (line: string) => void): Promise<Engines> {
    const place = await openTemporaryPlace();
    const engines = new Engines(place, dist, hasPooler);
    try {
      progress('starting etcd, Patroni and RabbitMQ on three machines');
      if (dist === 'dist') await build(place.supervisor, PROJECT_ROOTS);
      await engines.#startHaproxy();
      for (const machine of MACHINES)
        for (const engine of ENGINES) await engines.#makeFolder(machine, engine);
      for (const machine of MACHINES) for (const engine of ENGINES) await engines.start(machine, engine);
      await engines.untilHealthy();
      if (hasPooler) await engines.#startPooler();
      progress('etcd, Patroni and RabbitMQ are healthy on all machines');
      return engines;
    } catch (error) {
      await place.supervisor.stop();
      throw error;
    }
  }

  /**
   * Returns the URL by which replicas reach a server: replicas `a` through haproxy or the pooler, replicas
   * `b` by the addresses of all machines.
   */
  urlFor(letter: 'a' | 'b', url: string): string {
    const { port, protocol } = new URL(url);
    if (letter === 'a') {
      const isPooled = this.#hasPooler && protocol === 'postgres:';
      return isPooled ? url.replace(`${HOST_ADDRESS}:${port}`, `${HOST_ADDRESS}:${POOLER_PORT}`) : url;
    }
    const hosts = MACHINES.map((machine) => `${addressOf(machine)}:${port}`).join(',');
    const attributes = protocol === 'postgres:' ? '?target_session_attrs=read-write' : '';
    return url.replace(`${HOST_ADDRESS}:${port}`, hosts) + attributes;
  }

  get databaseUrl(): string {
    return `postgres://postgres:${this.#password}@${HOST_ADDRESS}:${PORTS.database}/postgres`;
  }

  get rabbitmqUrl(): string {
    return `amqp://${BROKER_USER}:${this.#password}@${HOST_ADDRESS}:${PORTS.broker}`;
  }

  get managementUrl(): string {
    return `http://${BROKER_USER}:${this.#password}@${HOST_ADDRESS}:${PORTS.management}`;
  }

  async createPlatform(): Promise<TestPlatform> {
    const { supervisor, folder } = this.place;
    const platform = await TestPlatform.create({ supervisor, folder, servers: this, dist: this.#dist });
    const { databases } = platform.settings;
    const settings = SERVICE_NAMES.flatMap((name) => sessionsOf(name, new URL(databases[name].app).username));
    if (this.#hasPooler) await queryAt(this.databaseUrl, ...settings);
    return platform;
  }

  close(): Promise<void> {
    return this.place.supervisor.stop();
  }

  /**
   * Starts an engine, and restarts it 2 s after it ends by itself, as systemd would. A RabbitMQ node exits if
   * autoheal finds it while it boots.
   */
  async start(machine: Machine, engine: Engine): Promise<void> {
    const settings = { machine, folder: this.#folder(machine, engine), password: this.#password };
    const commands: Readonly<Record<Engine, readonly [command: string, ...args: string[]]>> = {
      etcd: ['/usr/bin/etcd', ...etcdArguments(settings)],
      database: ['/usr/bin/patroni', join(settings.folder, 'patroni.json')],
      broker: ['/usr/lib/rabbitmq/bin/rabbitmq-server'],
    };
    const user = USERS[engine];
    const group = userOf(user);
    const clock = Object.entries(this.#clock(machine).environment).map((entry) => entry.join('='));
    const name = nameOf(machine, engine);
    const start = Symbol(name);
    this.#running.set(name, start);
    const { ended } = await this.place.supervisor.spawn({
      name,
      stage: engine === 'etcd' ? 0 : 1,
      command: 'nsenter',
      args: [
        `--net=/run/netns/m${machine}`,
        'chroot',
        `--userspec=${group.uid}:${group.gid}`,
        debianRoot(),
        '/usr/bin/env',
        ...clock,
        ...commands[engine],
      ],
      env: brokerEnvironment(settings),
      cwd: '/',
      // SIGKILL is enough: the engine's data is not used again.
      signal: 'SIGKILL',
    });
    void ended.then(async () => {
      await delay(RESTART_DELAY_MS);
      if (this.#running.get(name) === start && !this.place.supervisor.isStopping)
        await this.start(machine, engine);
    });
  }

  /** Returns the pids of engines on a machine, in the order in which they must be killed. */
  processes(machine: Machine, engines: readonly Engine[] = ENGINES): number[] {
    const namespace = `net:[${statSync(`/run/netns/m${machine}`).ino}]`;
    const names = engines.flatMap((engine) => PROCESSES[engine]);
    const found: { pid: number; rank: number }[] = [];
    for (const pid of listPids()) {
      if (networkOf(pid) !== namespace) continue;
      const rank = names.indexOf(readProc(`${pid}/comm`)?.trim() ?? '');
      if (rank !== -1) found.push({ pid, rank });
    }
    return found.sort((one, other) => one.rank - other.rank || one.pid - other.pid).map(({ pid }) => pid);
  }

  /** Returns the pid of the parent process of a machine's PostgreSQL. */
  postmaster(machine: Machine): number {
    const file = join(this.#folder(machine, 'database'), 'data/postmaster.pid');
    return Number(readFileSync(file, 'utf8').split('\n', 1)[0]);
  }

  /** Kills all processes of engines on a machine. Returns their number. */
  async kill(machine: Machine, engines: readonly Engine[] = ENGINES): Promise<number> {
    for (const engine of engines) this.#running.delete(nameOf(machine, engine));
    let killed = 0;
    await eventually(() => {
      const pids = this.processes(machine, engines).filter((pid) => findProcessStart(pid) !== null);
      killed += pids.filter((pid) => trySignal(pid, 'SIGKILL')).length;
      if (pids.length > 0) throw new Error('some survived');
    });
    return killed;
  }

  /**
   * Sets the offset of the clock of a machine's PostgreSQL, Patroni and RabbitMQ from the true time. etcd
   * keeps the true time.
   */
  stepClock(machine: Machine, offsetS: number): void {
    this.#clock(machine).step(offsetS);
  }

  /** Returns the time of PostgreSQL's primary, in ms since 1970. */
  async databaseTimeMs(): Promise<number> {
    const [row] = await queryAt<{ now: Date }>(this.databaseUrl, 'SELECT clock_timestamp() AS now');
    return row?.now.getTime() ?? Number.NaN;
  }

  /** Connects a machine to the network, or disconnects it. */
  async connect(machine: Machine, isConnected: boolean): Promise<void> {
    await run('ip', ['link', 'set', `wire${machine}`, isConnected ? 'up' : 'down']);
  }

  /** Fills an engine's disk. @throws {Error} if free blocks remain */
  async fillDisk(machine: Machine, engine: Engine): Promise<void> {
    const file = `of=${this.#ballast(machine, engine)}`;
    // dd fails when the disk is full.
    await run('dd', ['if=/dev/zero', file, 'bs=64k']).catch(() => undefined);
    const { bavail } = statfsSync(this.#folder(machine, engine));
    if (bavail > 0) throw new Error(`m${machine} has ${bavail} free blocks left`);
  }

  async clearDisk(machine: Machine, engine: Engine): Promise<void> {
    await run('rm', ['--force', this.#ballast(machine, engine)]);
  }

  /**
   * Returns the machine of PostgreSQL's primary, according to Patroni.
   * @throws {Error} while there is none
   */
  async databaseLeader(): Promise<Machine> {
    const leader = (await this.#members()).find(({ role }) => role === 'leader');
    return machineOf(leader?.name.slice(1));
  }

  async etcdLeader(): Promise<Machine> {
    for (const machine of MACHINES) {
      const url = `http://${addressOf(machine)}:${PORTS.etcd}/v3/maintenance/status`;
      const status = await fetchJson<{ leader: string; header: { member_id: string } }>(url, {
        method: 'POST',
        body: '{}',
      });
      if (status.leader === status.header.member_id) return machine;
    }
    throw new Error('etcd has no leader');
  }

  /**
   * Waits until etcd is healthy, both standbys of PostgreSQL stream, one of them synchronously, and RabbitMQ
   * has all nodes and queue members.
   * @throws {Error} that names what is not healthy, after 120 s
   */
  async untilHealthy(): Promise<void> {
    await eventually(
      async () => {
        for (const machine of MACHINES) {
          if (!(await respondsOk(`http://${addressOf(machine)}:${PORTS.etcd}/health`)()))
            throw new Error(`etcd of m${machine} is not healthy`);
        }
        const members = await this.#members();
        const states = members.map(({ name, role, state }) => `${name} ${role} ${state}`).sort();
        const following = members.filter(({ state }) => state === 'streaming');
        const isSynchronous = following.some(({ role }) => role === 'sync_standby');
        if (following.length < 2 || !isSynchronous) throw new Error(`Patroni has ${states.join(', ')}`);
        await this.brokers.assertHealthy();
      },
      { timeoutMs: HEALTHY_TIMEOUT_MS, intervalMs: 500 },
    );
  }

  #members(): Promise<{ name: string; role: string; state: string }[]> {
    return firstOf(async (machine) => {
      const url = `http://${addressOf(machine)}:${PORTS.patroni}/cluster`;
      return (await fetchJson<{ members: { name: string; role: string; state: string }[] }>(url)).members;
    });
  }

  #clock(machine: Machine): StepClock {
    const clock = this.#clocks.get(machine);
    if (clock === undefined) throw new Error(`m${machine} has no clock`);
    return clock;
  }

  get #password(): string {
    return this.place.secret('engines');
  }

  #folder(machine: Machine, engine: Engine): string {
    // Not in the place's folder: it could not be removed while it contains mount points.
    return `/run/m${machine}-${engine}`;
  }

  #ballast(machine: Machine, engine: Engine): string {
    return join(this.#folder(machine, engine), 'ballast');
  }

  /** Mounts a separate disk for an engine, and writes its configuration. */
  async #makeFolder(machine: Machine, engine: Engine): Promise<void> {
    const folder = this.#folder(machine, engine);
    const { uid, gid } = userOf(USERS[engine]);
    mkdirSync(folder);
    const options = `size=${DISK_SIZE},mode=700,uid=${uid},gid=${gid}`;
    await run('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', folder]);
    const settings = { machine, folder, password: this.#password };
    const texts: Readonly<Record<Engine, Readonly<Record<string, string>>>> = {
      etcd: {},
      database: { 'patroni.json': patroniConfiguration(settings) },
      broker: {
        'rabbitmq.conf': brokerConfiguration(settings),
        enabled_plugins: '[rabbitmq_management].\n',
        '.erlang.cookie': this.#password,
      },
    };
    for (const [name, text] of Object.entries(texts[engine])) {
      writeFileSync(join(folder, name), text, { mode: 0o400 });
      chownSync(join(folder, name), uid, gid);
    }
  }

  async #startPooler(): Promise<void> {
    const { uid, gid } = userOf('postgres');
    const files = {
      'pgbouncer.ini': poolerConfiguration('/run/pgbouncer.users'),
      'pgbouncer.users': `"postgres" "${this.#password}"\n`,
    };
    for (const [name, text] of Object.entries(files)) {
      writeFileSync(join('/run', name), text, { mode: 0o400 });
      chownSync(join('/run', name), uid, gid);
    }
    await this.place.supervisor.spawn({
      name: 'pgbouncer',
      stage: 1,
      command: 'chroot',
      cwd: '/',
      signal: 'SIGKILL',
      env: { PATH: process.env['PATH'] },
      args: [`--userspec=${uid}:${gid}`, debianRoot(), '/usr/sbin/pgbouncer', '/run/pgbouncer.ini'],
    });
  }

  async #startHaproxy(): Promise<void> {
    const file = join(this.place.folder, 'haproxy.cfg');
    writeFileSync(file, haproxyConfiguration());
    await this.place.supervisor.spawn({
      name: 'haproxy',
      stage: 1,
      command: 'chroot',
      cwd: '/',
      signal: 'SIGKILL',
      env: { PATH: process.env['PATH'] },
      args: [debianRoot(), '/usr/sbin/haproxy', '-db', '-f', file],
    });
  }
}

/** Sets on the role the session parameters that a pooler does not pass on. See docs/scaling.md. */
function sessionsOf(service: ServiceName, role: string): string[] {
  const settings = {
    search_path: service,
    default_transaction_isolation: service === 'settings' ? 'repeatable read' : 'read committed',
    statement_timeout: service === 'auth' ? '5s' : '10s',
    idle_in_transaction_session_timeout: '30s',
  };
  return Object.entries(settings).map(([name, value]) => `ALTER ROLE "${role}" SET ${name} = '${value}'`);
}

function nameOf(machine: Machine, engine: Engine): string {
  return `m${machine}-${engine}`;
}

function userOf(name: string): RunAs {
  const user = parsePasswd(readFileSync(join(debianRoot(), 'etc/passwd'), 'utf8'), name);
  if (user === null) throw new Error(`the private Debian has no user ${name}`);
  return user;
}

async function firstOf<T>(work: (machine: Machine) => Promise<T>): Promise<T> {
  let failure: unknown = null;
  for (const machine of MACHINES) {
    try {
      return await work(machine);
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}
