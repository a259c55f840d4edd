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
   * Bytes of history that one caller may write at one replica in an hour. An entry counts its value and 1
   * KiB. 0: no limit.
   */
  WRITE_BYTES_PER_HOUR: z.coerce
    .number()
    .int()
    .min(0)
    .max(1e15)
    .default(16 * 1024 ** 3),
  /** How long `next` of a response with changes can be used as `after`. */
  CHANGES_TOKEN_LIFETIME_SECONDS: z.coerce.number().int().min(60).max(31_536_000).default(86_400),
  /** Requests of one replica that wait for changes at the same time; others get 503. */
  CHANGES_MAX_WATCHERS: z.coerce.number().int().min(1).max(100_000).default(2_000),
});

export type SettingsServiceConfig = z.output<typeof settingsServiceConfigSchema>;

/** @throws {ConfigError} naming every variable that is missing or wrong */
export function loadSettingsServiceConfig(env?: NodeJS.ProcessEnv): Readonly<SettingsServiceConfig> {
  return loadConfig(settingsServiceConfigSchema, env);
}

export const settingsAdminConfigSchema = z.object({ DATABASE_URL: serviceConfigShape.DATABASE_URL });

/**
 * What the operator's command line reads.
 * @throws {ConfigError} naming the variable if it is missing or wrong
 */
export function loadSettingsAdminConfig(
  env?: NodeJS.ProcessEnv,
): Readonly<z.output<typeof settingsAdminConfigSchema>> {
  return loadConfig(settingsAdminConfigSchema, env);
}
