import { authServiceConfigShape } from '@platform/access-tokens';
import {
  brokerAddresses,
  cursorConfigShape,
  loadConfig,
  serviceConfigShape,
} from '@platform/service-defaults';
import { z } from 'zod';

const shape = z.object({
  ...serviceConfigShape,
  /**
   * Shares of DATABASE_POOL_SIZE: connections of the message consumers, and of the relay and scheduler. HTTP
   * gets the rest.
   */
  DATABASE_POOL_CONSUMERS: z.coerce.number().int().min(1).max(500).default(5),
  DATABASE_POOL_RELAY: z.coerce.number().int().min(2).max(500).default(5),
  PORT: serviceConfigShape.PORT.default(3003),
  METRICS_PORT: serviceConfigShape.METRICS_PORT.default(9103),
  ...authServiceConfigShape,
  ...cursorConfigShape,
  /** Addresses of the two buses, which may be one broker, two virtual hosts or two brokers. */
  RABBITMQ_MAIN_URL: brokerAddresses,
  RABBITMQ_SCHEDULING_URL: brokerAddresses,
  /** Namespace of the message types on the wire. */
  MESSAGE_NAMESPACE: z
    .string()
    .regex(/^[\w.]{1,100}$/)
    .default('Platform.Contracts'),
  /** Path prefix of every route, e.g. `/task`. Empty by default. */
  TASK_BASE_PATH: z
    .string()
    .regex(/^(\/[\w.-]+)*\/?$/)
    .default(''),
  /** Days ahead for which instances are generated. */
  GENERATION_HORIZON_DAYS: z.coerce.number().int().min(1).max(366).default(30),
  /** Days back for which generation creates instances that it missed. */
  GENERATION_CATCH_UP_DAYS: z.coerce.number().int().min(1).max(366).default(90),
  /**
   * Minimum minutes between two occurrences of a schedule that a customer or owner creates. An
   * InternalPartner may have one every minute.
   */
  SCHEDULE_MIN_INTERVAL_MINUTES: z.coerce.number().int().min(1).max(1_440).default(5),
  /** Maximum Active schedules of a facility. */
  SCHEDULES_PER_FACILITY: z.coerce.number().int().min(1).max(1_000_000).default(1_000),
  /** Maximum Pending instances of a facility. */
  INSTANCES_PER_FACILITY: z.coerce.number().int().min(1).max(100_000_000).default(200_000),
  /** Maximum schedules created for a facility per hour. */
  SCHEDULE_CREATIONS_PER_HOUR: z.coerce.number().int().min(1).max(1_000_000).default(1_000),
  /** Maximum changes of one schedule per hour, including pause and resume. */
  SCHEDULE_CHANGES_PER_HOUR: z.coerce.number().int().min(1).max(100_000).default(60),
  /** Seconds over which the triggers with the default expression are spread. 0: all fire at once. */
  TRIGGER_JITTER_SECONDS: z.coerce.number().int().min(0).max(3_600).default(900),
  /**
   * Days for which fires are kept. The minimum of one day is far longer than the 1.5 h within which a missed
   * occurrence still fires.
   */
  FIRE_RETENTION_DAYS: z.coerce.number().int().min(1).max(3_660).default(30),
  /** Days for which completed and cancelled instances are kept after they were due. 0: for ever. */
  INSTANCE_RETENTION_DAYS: z.coerce.number().int().min(0).max(36_500).default(0),
  /**
   * Days for which removed schedules are kept. One that still has instances, released ones included, is kept
   * longer. 0: for ever.
   */
  REMOVED_SCHEDULE_RETENTION_DAYS: z.coerce.number().int().min(0).max(36_500).default(90),
  /** Days for which instances are kept that a change of their schedule or calendar cancelled. 0: for ever. */
  RELEASED_RETENTION_DAYS: z.coerce.number().int().min(0).max(36_500).default(30),
  /** Maximum instances of a facility that changes have cancelled; the latest are kept. */
  RELEASED_PER_FACILITY: z.coerce.number().int().min(1).max(100_000_000).default(100_000),
  /**
   * Seconds between two purges of each kind of old rows. Released instances are purged at least every 300 s.
   */
  RETENTION_INTERVAL_SECONDS: z.coerce.number().int().min(5).max(3_600).default(3_600),
  /** Milliseconds for which a command waits for its reply over the bus. */
  REQUEST_TIMEOUT_MS: z.coerce.number().int().min(100).max(300_000).default(30_000),
});

/** Returns the number of connections left for HTTP. */
export function httpPoolSize(
  config: Pick<TaskServiceConfig, 'DATABASE_POOL_SIZE' | 'DATABASE_POOL_CONSUMERS' | 'DATABASE_POOL_RELAY'>,
): number {
  return config.DATABASE_POOL_SIZE - config.DATABASE_POOL_CONSUMERS - config.DATABASE_POOL_RELAY;
}

/** Returns the number of HTTP connections that changes may hold while they wait for locks. */
export function connectionsForChanges(config: Parameters<typeof httpPoolSize>[0]): number {
  return Math.max(1, Math.floor(httpPoolSize(config) / 2));
}

/**
 * Returns how many reads may run at once. The shares of reads, changes and creations overlap: a request that
 * finds no free connection waits in the pool.
 */
export function connectionsForReads(config: Parameters<typeof httpPoolSize>[0]): number {
  return Math.max(1, Math.floor((httpPoolSize(config) * 3) / 4));
}

/** Returns how many reads of one caller may run at once. */
export function readsOfOneCaller(config: Parameters<typeof httpPoolSize>[0]): number {
  return Math.max(1, Math.floor(httpPoolSize(config) / 4));
}

/** Returns the number of HTTP connections that batches of new schedules may hold. */
export function connectionsForCreations(config: Parameters<typeof httpPoolSize>[0]): number {
  const rest = httpPoolSize(config) - connectionsForChanges(config);
  return Math.max(1, Math.floor((rest * 2) / 3));
}

export const taskServiceConfigSchema = shape
  .refine((config) => httpPoolSize(config) >= 1, {
    path: ['DATABASE_POOL_SIZE'],
    message: 'must be more than DATABASE_POOL_CONSUMERS and DATABASE_POOL_RELAY together',
  })
  // Generation would otherwise create deleted instances again.
  .refine((config) => isLongerThanCatchUp(config.INSTANCE_RETENTION_DAYS, config), {
    path: ['INSTANCE_RETENTION_DAYS'],
    message: 'must be 0 or more than GENERATION_CATCH_UP_DAYS',
  });

function isLongerThanCatchUp(days: number, { GENERATION_CATCH_UP_DAYS }: z.output<typeof shape>): boolean {
  return days === 0 || days > GENERATION_CATCH_UP_DAYS;
}

export type TaskServiceConfig = z.output<typeof shape>;

export const taskAdminConfigSchema = z.object({
  DATABASE_URL: serviceConfigShape.DATABASE_URL,
  RABBITMQ_MAIN_URL: brokerAddresses,
  RABBITMQ_SCHEDULING_URL: brokerAddresses,
  GENERATION_HORIZON_DAYS: shape.shape.GENERATION_HORIZON_DAYS,
  GENERATION_CATCH_UP_DAYS: shape.shape.GENERATION_CATCH_UP_DAYS,
});

export type TaskAdminConfig = z.output<typeof taskAdminConfigSchema>;

/**
 * Loads the configuration of the operator's command line.
 * @throws {ConfigError} naming every variable that is missing or wrong
 */
export function loadTaskAdminConfig(env?: NodeJS.ProcessEnv): Readonly<TaskAdminConfig> {
  return loadConfig(taskAdminConfigSchema, env);
}

export const TASK_CONFIG = Symbol('TASK_CONFIG');

/**
 * Loads the configuration of the service.
 * @throws {ConfigError} naming every variable that is missing or wrong
 */
export function loadTaskServiceConfig(env?: NodeJS.ProcessEnv): Readonly<TaskServiceConfig> {
  return loadConfig(taskServiceConfigSchema, env);
}
