import { Persona } from '@platform/personas';
import { tracedFetch } from '@platform/service-defaults';
import { z } from 'zod';
import { trustAuthService } from './access-token-validator';
import type { AccessTokensOptions, OwnTokens } from './access-token-validator';
import { configuredTokens, tokenConfigShape } from './keys/token-settings';

/** What a service reads to accept the tokens of auth-service; spread it into the service's own schema. */
export const authServiceConfigShape = {
  ...tokenConfigShape,
  /** Where public keys and the revocation feed are read. */
  AUTH_SERVICE_URL: z.url({ protocol: /^https?$/ }),
  /** The service's own identity, with which it reads the feed. */
  SERVICE_APPLICATION_KEY: z.string().min(1),
  SERVICE_SHARED_SECRET: z.string().min(1),
  SERVICE_USER_NAME: z.string().min(1),
};

/** The values of `authServiceConfigShape`. */
type AuthServiceConfig = z.output<z.ZodObject<typeof authServiceConfigShape>>;

/** The identity of a service, with which it asks auth-service for tokens of its own: what `TokenProvider` of the client library takes. */
interface ServiceIdentity {
  authServiceUrl: string;
  applicationKey: string;
  sharedSecret: string;
  persona: Persona;
  userName: string;
  fetch: typeof globalThis.fetch;
}

/** The options of a service that accepts the tokens of auth-service: its configured and its published keys, and its revocations, which
 *  are read with tokens from `provideTokens`.
 *  @throws {RangeError} when two different keys of one issuer share a key id */
export function authServiceTokens(
  config: AuthServiceConfig,
  provideTokens: (identity: ServiceIdentity) => OwnTokens,
): AccessTokensOptions {
  const authServiceUrl = config.AUTH_SERVICE_URL;
  const ownTokens = provideTokens({
    authServiceUrl,
    applicationKey: config.SERVICE_APPLICATION_KEY,
    sharedSecret: config.SERVICE_SHARED_SECRET,
    persona: Persona.InternalPartner,
    userName: config.SERVICE_USER_NAME,
    fetch: tracedFetch,
  });
  return trustAuthService({ ...configuredTokens(config), authServiceUrl, ownTokens, fetch: tracedFetch });
}
