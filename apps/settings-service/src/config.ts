import { authServiceConfigShape } from '@platform/access-tokens';
import { cursorConfigShape, loadConfig, serviceConfigShape } from '@platform/service-defaults';
import { z } from 'zod';

export const settingsServiceConfigSchema = z.object({
  ...serviceConfigShape,
  PORT: serviceConfigShape.PORT.default(3002),
  METRICS_PORT: serviceConfigShape.METRICS_PORT.default(9102),
  ...authServiceConfigShape,
  ...cursorConfigShape,
  /**
   * History bytes that one caller may write at one replica per hour. Each entry counts the size of its value
   * plus 1 KiB. 0 means no limit.
   */
  WRITE_BYTES_PER_HOUR: z.coerce
    .number()
    .int()
    .min(0)
    .max(1e15)
    .default(16 * 1024 ** 3),
  /** Seconds for which the `next` cursor of a changes response stays valid. */
  CHANGES_TOKEN_LIFETIME_SECONDS: z.coerce.number().int().min(60).max(31_536_000).default(86_400),
  /** Requests that may wait for changes at one replica at the same time. Further ones get 503. */
  CHANGES_MAX_WATCHERS: z.coerce.number().int().min(1).max(100_000).default(2_000),
});

export type SettingsServiceConfig = z.output<typeof settingsServiceConfigSchema>;

/** @throws {ConfigError} naming every variable that is missing or wrong */
export function loadSettingsServiceConfig(env?: NodeJS.ProcessEnv): Readonly<SettingsServiceConfig> {
  return loadConfig(settingsServiceConfigSchema, env);
}

export const settingsAdminConfigSchema = z.object({ DATABASE_URL: serviceConfigShape.DATABASE_URL });

/**
 * Loads the configuration of the operator's command line.
 * @throws {ConfigError} naming the variable if it is missing or wrong
 */
export function loadSettingsAdminConfig(
  env?: NodeJS.ProcessEnv,
): Readonly<z.output<typeof settingsAdminConfigSchema>> {
  return loadConfig(settingsAdminConfigSchema, env);
}
