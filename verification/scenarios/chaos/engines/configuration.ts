import { addressOf, type Machine, MACHINES, HOST_ADDRESS } from './namespaces.ts';

/** Settings of one engine (PostgreSQL with Patroni, RabbitMQ or etcd) on one machine. */
export interface NodeSettings {
  readonly machine: Machine;
  /** Folder of the engine's data. */
  readonly folder: string;
  readonly password: string;
}

export const BROKER_USER = 'platform';
/** Ports on every machine. haproxy listens on the same ports and forwards connections to the machines. */
export const PORTS = { database: 5432, broker: 5672, management: 15_672, patroni: 8008, etcd: 2379 } as const;

/** Startup parameters of the services that the pooler ignores. The role's settings replace them. */
const POOLER_IGNORES = ['options', 'statement_timeout', 'idle_in_transaction_session_timeout'];
export const POOLER_PORT = 6432;

/** Returns the name of a machine's RabbitMQ node. */
export function brokerNode(machine: Machine): string {
  return `rabbit@${addressOf(machine)}`;
}

export function etcdArguments({ machine, folder }: Pick<NodeSettings, 'machine' | 'folder'>): string[] {
  const client = `http://${addressOf(machine)}:${PORTS.etcd}`;
  const peer = (one: Machine): string => `http://${addressOf(one)}:2380`;
  return [
    '--name',
    `m${machine}`,
    '--data-dir',
    `${folder}/data`,
    '--log-level',
    'warn',
    '--listen-client-urls',
    client,
    '--advertise-client-urls',
    client,
    '--listen-peer-urls',
    peer(machine),
    '--initial-advertise-peer-urls',
    peer(machine),
    '--initial-cluster',
    MACHINES.map((one) => `m${one}=${peer(one)}`).join(','),
    // Longer than the defaults: everything runs on one small machine, whose pauses must not count as
    // failures.
    '--heartbeat-interval',
    '200',
    '--election-timeout',
    '2000',
  ];
}

const SERVER = {
  bin_dir: '/usr/lib/postgresql/17/bin',
  basebackup: { checkpoint: 'fast' },
  pg_hba: [
    'host all all 10.77.0.0/24 scram-sha-256',
    'host replication replicator 10.77.0.0/24 scram-sha-256',
  ],
  remove_data_directory_on_rewind_failure: true,
  remove_data_directory_on_diverged_timelines: true,
};
/**
 * WAL sizes are small so that a full disk is noticed soon. `wal_sender_timeout` (60 s by default) limits the
 * time for which a commit waits for a silent standby.
 */
const PARAMETERS = {
  max_connections: 400,
  shared_buffers: '64MB',
  wal_sender_timeout: '5s',
  wal_receiver_timeout: '5s',
  max_wal_size: '256MB',
  min_wal_size: '16MB',
  timezone: 'UTC',
  log_timezone: 'UTC',
};

/** Returns Patroni's configuration. Patroni expects YAML, of which JSON is a subset. */
export function patroniConfiguration({ machine, folder, password }: NodeSettings): string {
  const address = addressOf(machine);
  const login = (username: string): object => ({ username, password });
  const hosts = MACHINES.map((one) => `${addressOf(one)}:${PORTS.etcd}`);
  const api = `${address}:${PORTS.patroni}`;
  const server = `${address}:${PORTS.database}`;
  return JSON.stringify({
    scope: 'chaos',
    name: `m${machine}`,
    restapi: { listen: api, connect_address: api },
    etcd3: { hosts },
    bootstrap: {
      dcs: {
        ttl: 20,
        loop_wait: 2,
        retry_timeout: 4,
        primary_start_timeout: 0,
        synchronous_mode: true,
        synchronous_mode_strict: true,
        postgresql: { use_pg_rewind: true, use_slots: true },
      },
      initdb: ['data-checksums', { encoding: 'UTF8' }, { locale: 'C.UTF-8' }, { 'wal-segsize': '4' }],
    },
    postgresql: {
      listen: server,
      connect_address: server,
      data_dir: `${folder}/data`,
      pgpass: `${folder}/pgpass`,
      authentication: {
        superuser: login('postgres'),
        replication: login('replicator'),
        rewind: login('rewinder'),
      },
      ...SERVER,
      parameters: { ...PARAMETERS, unix_socket_directories: folder },
    },
  });
}

export function brokerConfiguration({ machine, password }: NodeSettings): string {
  const address = addressOf(machine);
  return [
    `listeners.tcp.1 = ${address}:${PORTS.broker}`,
    `management.tcp.ip = ${address}`,
    `management.tcp.port = ${PORTS.management}`,
    `default_user = ${BROKER_USER}`,
    `default_pass = ${password}`,
    'cluster_formation.peer_discovery_backend = classic_config',
    ...MACHINES.map((one) => `cluster_formation.classic_config.nodes.${one} = ${brokerNode(one)}`),
    // With pause_minority a node that was frozen does not rejoin. A minority of a quorum queue confirms
    // nothing in either mode.
    'cluster_partition_handling = autoheal',
    // Seconds for which declarations and new consumers wait for a silent node. 60 by default.
    'net_ticktime = 4',
    // Interval in ms at which a silent leader of a queue is detected. 5,000 by default.
    'raft.adaptive_failure_detector.poll_interval = 1000',
    'queue_leader_locator = balanced',
    'raft.wal_max_size_bytes = 67108864',
    'log.console = true',
    'log.console.level = info',
    'log.file = false',
    '',
  ].join('\n');
}

export function brokerEnvironment({ machine, folder }: NodeSettings): NodeJS.ProcessEnv {
  return {
    PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
    LANG: 'C.UTF-8',
    HOME: folder,
    RABBITMQ_NODENAME: brokerNode(machine),
    RABBITMQ_USE_LONGNAME: 'true',
    RABBITMQ_MNESIA_BASE: `${folder}/data`,
    RABBITMQ_LOG_BASE: `${folder}/log`,
    RABBITMQ_PID_FILE: `${folder}/pid`,
    RABBITMQ_CONFIG_FILE: `${folder}/rabbitmq.conf`,
    RABBITMQ_ENABLED_PLUGINS_FILE: `${folder}/enabled_plugins`,
    RABBITMQ_CONF_ENV_FILE: '/dev/null',
    RUNNING_UNDER_SYSTEMD: 'true',
    // net_tickintensity: 20 checks per net_ticktime instead of 4, so a silent node is detected with 5 %
    // accuracy. net_setuptime: after the detection, declarations and unacknowledged deliveries of the node
    // wait this many seconds for a connection to it. 7 by default.
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS:
      '-kernel net_tickintensity 20 -kernel net_setuptime 1 +S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none',
  };
}

/**
 * Returns haproxy's configuration. It finds the primary through Patroni. It checks brokers by their AMQP
 * greeting, because a frozen broker still accepts connections.
 */
export function haproxyConfiguration(): string {
  const servers = (port: number, check = ''): string[] =>
    MACHINES.map((one) => `  server m${one} ${addressOf(one)}:${port} check${check}`);
  const greeting = [
    '  option tcp-check',
    ...['connect', 'send-binary 414d515000000901', 'expect binary 01'].map((step) => `  tcp-check ${step}`),
  ];
  return [
    'defaults',
    '  mode tcp',
    '  timeout connect 2s',
    '  timeout client 1h',
    '  timeout server 1h',
    '  timeout check 2s',
    '  default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions',
    'listen database',
    `  bind ${HOST_ADDRESS}:${PORTS.database}`,
    '  option httpchk GET /primary',
    ...servers(PORTS.database, ` port ${PORTS.patroni}`),
    'listen broker',
    `  bind ${HOST_ADDRESS}:${PORTS.broker}`,
    '  balance leastconn',
    '  timeout check 1s',
    ...greeting,
    ...servers(PORTS.broker, ' inter 500ms'),
    'listen management',
    `  bind ${HOST_ADDRESS}:${PORTS.management}`,
    ...greeting,
    ...servers(PORTS.management, ` port ${PORTS.broker}`),
    '',
  ].join('\n');
}

/**
 * Returns the configuration of a PgBouncer before haproxy's PostgreSQL port, as docs/scaling.md recommends.
 * It reads roles from the database.
 * @param users path of the file with the password of `postgres`
 */
export function poolerConfiguration(users: string): string {
  return [
    '[databases]',
    `* = host=${HOST_ADDRESS} port=${PORTS.database} auth_user=postgres auth_dbname=postgres`,
    '[pgbouncer]',
    `listen_addr = ${HOST_ADDRESS}`,
    `listen_port = ${POOLER_PORT}`,
    'unix_socket_dir =',
    'auth_type = scram-sha-256',
    `auth_file = ${users}`,
    'pool_mode = transaction',
    'max_client_conn = 1000',
    'default_pool_size = 40',
    'max_prepared_statements = 200',
    'server_login_retry = 1',
    'server_connect_timeout = 3',
    `ignore_startup_parameters = ${POOLER_IGNORES.join(',')}`,
    '',
  ].join('\n');
}
