import { authServiceConfigShape } from '@platform/access-tokens';
import { loadConfig, secret, serviceConfigShape } from '@platform/service-defaults';
import { z } from 'zod';

/** Everything this service reads from its environment. */
export const settingsServiceConfigSchema = z.object({
  ...serviceConfigShape,
  PORT: serviceConfigShape.PORT.default(3002),
  METRICS_PORT: serviceConfigShape.METRICS_PORT.default(9102),
  ...authServiceConfigShape,
  /** Signs page keys; the same on every replica. */
  CURSOR_HMAC_KEY: secret({ minBytes: 32 }),
});

export type SettingsServiceConfig = z.output<typeof settingsServiceConfigSchema>;

/** @throws {ConfigError} naming every variable that is missing or wrong */
export function loadSettingsServiceConfig(env?: NodeJS.ProcessEnv): Readonly<SettingsServiceConfig> {
  return loadConfig(settingsServiceConfigSchema, env);
}
