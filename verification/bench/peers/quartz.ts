/** The peer of the scheduler: Quartz over JDBC, if Java and its Debian packages are installed. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { findFreePorts } from '#platform/ports.ts';
import { WORKSPACE } from '#platform/state-folder.ts';
import type { PrivateServers } from '#platform/test-platform.ts';
import { type Installed, isInstalled, startInstalled } from './installed.ts';

const JARS = ['quartz2', 'postgresql', 'HikariCP', 'slf4j-api', 'slf4j-nop'].map(
  (name) => `/usr/share/java/${name}.jar`,
);

/** The condition that a benchmark lists if Quartz is not installed. */
export const NO_QUARTZ =
  'Quartz is not installed here (Debian: default-jdk-headless, libquartz2-java, libpostgresql-jdbc-java): nothing stands beside it';

/** Starts a node, which creates its tables in the database. Null if Quartz is not installed. */
export async function startQuartz(
  servers: PrivateServers,
  databaseUrl: string,
  variables: NodeJS.ProcessEnv,
): Promise<Installed | null> {
  if (!isInstalled('javac') || !JARS.every((jar) => existsSync(jar))) return null;
  const [port = 0] = await findFreePorts(1);
  const { host, pathname, username, password } = new URL(databaseUrl);
  const jdbcUrl = `jdbc:postgresql://${host}${pathname}?user=${username}&password=${password}`;
  return startInstalled(servers, {
    command: 'java',
    port,
    readyPath: '/',
    args: ['-cp', JARS.join(':'), join(WORKSPACE, 'verification/bench/peers/Quartz.java')],
    variables: { ...variables, JDBC_URL: jdbcUrl, PORT: String(port) },
  });
}

/** Inserts daily triggers for its only job. None is due. */
export const fillQuartz = (size: number): string => `
  INSERT INTO qrtz_triggers (sched_name, trigger_name, trigger_group, job_name, job_group, next_fire_time, prev_fire_time, priority,
    trigger_state, trigger_type, start_time, end_time, misfire_instr)
  SELECT 'bench', n, 'DEFAULT', 'job', 'DEFAULT', (extract(epoch FROM now()) + 21600 + n) * 1000, -1, 5, 'WAITING', 'CRON', 0, 0, 0
  FROM generate_series(1, ${size}) AS n;
  INSERT INTO qrtz_cron_triggers (sched_name, trigger_name, trigger_group, cron_expression, time_zone_id)
  SELECT 'bench', n, 'DEFAULT', '0 ' || n % 60 || ' 2 * * ?', 'Europe/Berlin' FROM generate_series(1, ${size}) AS n`;

/** Makes triggers overdue by up to 30 s, less than Quartz's misfire threshold of 60 s. */
export const makeQuartzDue = (count: number): string => `
  UPDATE qrtz_triggers SET next_fire_time = extract(epoch FROM now()) * 1000 - trigger_name::int * 30000 / ${count}
  WHERE trigger_name::int <= ${count}`;
