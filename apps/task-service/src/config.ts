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
   * Shares of DATABASE_POOL_SIZE: of the message consumers, and of the relay and the scheduler. HTTP has the
   * rest.
   */
  DATABASE_POOL_CONSUMERS: z.coerce.number().int().min(1).max(500).default(5),
  DATABASE_POOL_RELAY: z.coerce.number().int().min(2).max(500).default(5),
  PORT: serviceConfigShape.PORT.default(3003),
  METRICS_PORT: serviceConfigShape.METRICS_PORT.default(9103),
  ...authServiceConfigShape,
  ...cursorConfigShape,
  /** The two buses; they may be one broker, two virtual hosts or two brokers. */
  RABBITMQ_MAIN_URL: brokerAddresses,
  RABBITMQ_SCHEDULING_URL: brokerAddresses,
  /** Namespace of the message types on the wire. */
  MESSAGE_NAMESPACE: z
    .string()
    .regex(/^[\w.]{1,100}$/)
    .default('Platform.Contracts'),
  /** Path before every route, e.g. `/task`; none unless given. */
  TASK_BASE_PATH: z
    .string()
    .regex(/^(\/[\w.-]+)*\/?$/)
    .default(''),
  /** How far ahead instances are generated. */
  GENERATION_HORIZON_DAYS: z.coerce.number().int().min(1).max(366).default(30),
  /** How far back generation makes up for what it missed. */
  GENERATION_CATCH_UP_DAYS: z.coerce.number().int().min(1).max(366).default(90),
  /**
   * Least minutes between two occurrences of a schedule made by a customer or owner; InternalPartner may have
   * every minute.
   */
  SCHEDULE_MIN_INTERVAL_MINUTES: z.coerce.number().int().min(1).max(1_440).default(5),
  /** Active schedules that a facility may have. */
  SCHEDULES_PER_FACILITY: z.coerce.number().int().min(1).max(1_000_000).default(1_000),
  /** Pending instances that a facility may have. */
  INSTANCES_PER_FACILITY: z.coerce.number().int().min(1).max(100_000_000).default(200_000),
  /** How many schedules may be created for a facility within an hour. */
  SCHEDULE_CREATIONS_PER_HOUR: z.coerce.number().int().min(1).max(1_000_000).default(1_000),
  /** How often a schedule may be changed, paused or resumed within an hour. */
  SCHEDULE_CHANGES_PER_HOUR: z.coerce.number().int().min(1).max(100_000).default(60),
  /** Facilities whose trigger follows the default expression fire spread over so long; 0: all at once. */
  TRIGGER_JITTER_SECONDS: z.coerce.number().int().min(0).max(3_600).default(900),
  /** How long it stays known which occurrences fired; at least a day, far beyond any misfire. */
  FIRE_RETENTION_DAYS: z.coerce.number().int().min(1).max(3_660).default(30),
  /** How long instances that are completed or cancelled are kept after they were due; 0: for ever. */
  INSTANCE_RETENTION_DAYS: z.coerce.number().int().min(0).max(36_500).default(0),
  /** How long removed schedules are kept of which nothing but released instances is left; 0: for ever. */
  REMOVED_SCHEDULE_RETENTION_DAYS: z.coerce.number().int().min(0).max(36_500).default(90),
  /** How long instances are kept that a change of their schedule cancelled; 0: for ever. */
  RELEASED_RETENTION_DAYS: z.coerce.number().int().min(0).max(36_500).default(30),
  /** Of these so many at most of each facility, the latest. */
  RELEASED_PER_FACILITY: z.coerce.number().int().min(1).max(100_000_000).default(100_000),
  /** How often each kind of old rows is looked for; of released instances every five minutes at least. */
  RETENTION_INTERVAL_SECONDS: z.coerce.number().int().min(5).max(3_600).default(3_600),
  /** How long a command waits for its reply over the bus. */
  REQUEST_TIMEOUT_MS: z.coerce.number().int().min(100).max(300_000).default(30_000),
});

/** Connections that are left for HTTP. */
export function httpPoolSize(
  config: Pick<TaskServiceConfig, 'DATABASE_POOL_SIZE' | 'DATABASE_POOL_CONSUMERS' | 'DATABASE_POOL_RELAY'>,
): number {
  return config.DATABASE_POOL_SIZE - config.DATABASE_POOL_CONSUMERS - config.DATABASE_POOL_RELAY;
}

/** Connections of HTTP that changes may hold while they wait for locks. */
export function connectionsForChanges(config: Parameters<typeof httpPoolSize>[0]): number {
  return Math.max(1, Math.floor(httpPoolSize(config) / 2));
}

/** Reads that may run at once. The shares of reads, changes and creations overlap; whoever finds no
 *  connection waits in the pool. */
export function connectionsForReads(config: Parameters<typeof httpPoolSize>[0]): number {
  return Math.max(1, Math.floor((httpPoolSize(config) * 3) / 4));
}

/** Reads of one caller that may run at once. */
export function readsOfOneCaller(config: Parameters<typeof httpPoolSize>[0]): number {
  return Math.max(1, Math.floor(httpPoolSize(config) / 4));
}

/** Connections of HTTP that batches of new schedules may hold. */
export function connectionsForCreations(config: Parameters<typeof httpPoolSize>[0]): number {
  const rest = httpPoolSize(config) - connectionsForChanges(config);
  return Math.max(1, Math.floor((rest * 2) / 3));
}

export const taskServiceConfigSchema = shape
  .refine((config) => httpPoolSize(config) >= 1, {
    path: ['DATABASE_POOL_SIZE'],
    message: 'must be more than DATABASE_POOL_CONSUMERS and DATABASE_POOL_RELAY together',
  })
  // Generation would make again what has been forgotten.
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
 * What the operator's command line reads.
 * @throws {ConfigError} naming every variable that is missing or wrong
 */
export function loadTaskAdminConfig(env?: NodeJS.ProcessEnv): Readonly<TaskAdminConfig> {
  return loadConfig(taskAdminConfigSchema, env);
}

export const TASK_CONFIG = Symbol('TASK_CONFIG');

/** @throws {ConfigError} naming every variable that is missing or wrong */
export function loadTaskServiceConfig(env?: NodeJS.ProcessEnv): Readonly<TaskServiceConfig> {
  return loadConfig(taskServiceConfigSchema, env);
}
