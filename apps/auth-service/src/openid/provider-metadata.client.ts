import { MINUTE_MS, SECOND_MS } from '@platform/time';
import type { Clock } from '@platform/time';
import {
  ClientSecretBasic,
  ClientSecretPost,
  Configuration,
  allowInsecureRequests,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  getJwksCache,
  setJwksCache,
} from 'openid-client';
import type { ClientAuth, CustomFetch, ExportedJWKSCache, ServerMetadata } from 'openid-client';
import type { AuthConfig } from '../config';

/**
 * The identity provider is unreachable, broken, or does not accept this service as its client. This says
 * nothing about the user, so the caller gets a 503.
 */
export class IdentityProviderUnavailableError extends Error {
  override readonly name = 'IdentityProviderUnavailableError';
}

/** OAuth errors about this service's registration with the provider, not about the user or the sign-in. */
const CLIENT_ERRORS: ReadonlySet<unknown> = new Set(['invalid_client', 'unauthorized_client']);
/** The library's error codes for responses that are not OAuth, e.g. a proxy's maintenance page. */
const UNUSABLE_RESPONSES: ReadonlySet<unknown> = new Set([
  'OAUTH_RESPONSE_IS_NOT_JSON',
  'OAUTH_RESPONSE_IS_NOT_CONFORM',
  'OAUTH_WWW_AUTHENTICATE_CHALLENGE',
]);
const MAX_CAUSES = 5;

/**
 * Whether an error of the OpenID library, or one of its causes, means that the provider could not do its
 * work. False if the provider, or the check of its ID token, refused the sign-in.
 */
export function isProviderUnavailable(error: unknown): boolean {
  let current = error;
  for (let depth = 0; depth < MAX_CAUSES && current instanceof Error; depth += 1) {
    if (current instanceof IdentityProviderUnavailableError) return true;
    const { code, error: oauthError } = current as { code?: unknown; error?: unknown };
    if (UNUSABLE_RESPONSES.has(code)) return true;
    // An `invalid_client` in a callback has another code. It comes from the browser's form, so it proves
    // nothing.
    if (code === 'OAUTH_RESPONSE_BODY_ERROR' && CLIENT_ERRORS.has(oauthError)) return true;
    current = current.cause;
  }
  return false;
}

/**
 * Describes an error of the OpenID library for the log, by its kind only. Its causes contain codes, tokens
 * and claims. A callback's `error` is sent by the browser, so it is shown only if it looks like an OAuth
 * error code.
 */
export function describeProviderError(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error';
  const { code, error: oauthError } = error as { code?: unknown; error?: unknown };
  const kind = typeof oauthError === 'string' && /^[a-z_]{1,50}$/.test(oauthError) ? oauthError : undefined;
  return [error.message, code, kind].filter((part) => typeof part === 'string').join(', ');
}

/** The settings of single sign-on. */
export interface OpenIdSettings {
  issuer: string;
  clientId: string;
  clientSecret: string;
  redirectUri: string;
  scope: string;
  /** Maximum time in seconds since the user authenticated. */
  maxAgeSeconds: number;
  timeoutMs: number;
  /** Development only: issuer and redirect URI may be http. */
  httpAllowed: boolean;
}

/** Returns the settings, or null if single sign-on is not configured. */
export function openIdSettingsOf(config: AuthConfig): OpenIdSettings | null {
  const {
    OPENID_ISSUER: issuer,
    OPENID_CLIENT_ID: clientId,
    OPENID_CLIENT_SECRET: clientSecret,
    OPENID_REDIRECT_URI: redirectUri,
  } = config;
  // The configuration schema guarantees that all or none are set.
  if (!issuer || !clientId || !clientSecret || !redirectUri) return null;
  return {
    issuer,
    clientId,
    clientSecret,
    redirectUri,
    scope: config.OPENID_SCOPE,
    maxAgeSeconds: Math.min(config.REFRESH_MAX_AGE, config.BEARER_MAX_AGE),
    timeoutMs: config.OPENID_TIMEOUT_MS,
    httpAllowed: config.OPENID_HTTP_ALLOWED,
  };
}

/** Maximum age, in ms, of the provider's metadata when a sign-in is completed. */
const METADATA_MAX_AGE_MS = 10 * MINUTE_MS;
/**
 * Maximum age, in ms, of the provider's metadata when a sign-in is started. Short enough to notice a provider
 * that is down before the user is sent there, and long enough that a flood of sign-ins does not flood the
 * provider.
 */
const METADATA_FRESH_MS = SECOND_MS;
/**
 * Seconds by which the age of a cached key set is increased when the library gets it. The library fetches a
 * new key set for an unknown key only if the cached set looks at least this old, so a key rotation is noticed
 * at once. The library drops sets that look 300 s old.
 */
const KEY_SET_AGE_SECONDS = 60;
const TOO_MANY_REQUESTS = 429;

interface KnownProvider {
  metadata: ServerMetadata;
  readAtMs: number;
}

/** The identity provider's metadata and keys, fetched over HTTP and cached. */
export class ProviderMetadata {
  private known: KnownProvider | null = null;
  private reading: Promise<KnownProvider> | null = null;
  private keySet: ExportedJWKSCache | null = null;
  private readonly fetch: CustomFetch;

  constructor(
    private readonly settings: OpenIdSettings,
    private readonly clock: Clock,
  ) {
    this.fetch = providerFetch(settings.timeoutMs);
  }

  /**
   * Returns the configuration of a provider that responded within the last second.
   * @throws {IdentityProviderUnavailableError}
   */
  async reachable(): Promise<Configuration> {
    return this.configurationOf(await this.notOlderThan(METADATA_FRESH_MS));
  }

  /**
   * Returns the configuration of the provider, read at most ten minutes ago.
   * @throws {IdentityProviderUnavailableError} when it must be read again and the provider is down
   */
  async recent(): Promise<Configuration> {
    return this.configurationOf(await this.notOlderThan(METADATA_MAX_AGE_MS));
  }

  /** Caches the keys that this sign-in has downloaded, for the next sign-in. */
  rememberKeys(configuration: Configuration): void {
    const used = getJwksCache(configuration);
    if (used === undefined || used.uat === agedUat(this.keySet)) return;
    this.keySet = { jwks: used.jwks, uat: used.uat };
  }

  /** Makes the next sign-in download the keys again. */
  forgetKeys(): void {
    this.keySet = null;
  }

  private async notOlderThan(maxAgeMs: number): Promise<ServerMetadata> {
    const { known } = this;
    if (known !== null && this.clock.monotonicMs() - known.readAtMs <= maxAgeMs) return known.metadata;
    // Concurrent callers share one request.
    this.reading ??= this.read().finally(() => {
      this.reading = null;
    });
    return (await this.reading).metadata;
  }

  private async read(): Promise<KnownProvider> {
    const { issuer, clientId, httpAllowed } = this.settings;
    try {
      const found = await discovery(new URL(issuer), clientId, undefined, undefined, {
        [customFetch]: this.fetch,
        execute: httpAllowed ? [allowInsecureRequests] : [],
      });
      const metadata = found.serverMetadata();
      assertEndpoints(metadata, httpAllowed);
      this.known = { metadata, readAtMs: this.clock.monotonicMs() };
      return this.known;
    } catch (cause) {
      if (cause instanceof IdentityProviderUnavailableError) throw cause;
      const what = `the provider's metadata is not usable: ${describeProviderError(cause)}`;
      throw new IdentityProviderUnavailableError(what, { cause });
    }
  }

  /**
   * Builds the library's configuration for one sign-in. A shared one would cache keys by rules that notice a
   * rotation only after a minute.
   */
  private configurationOf(metadata: ServerMetadata): Configuration {
    const { clientId, clientSecret, httpAllowed } = this.settings;
    const configuration = new Configuration(
      metadata,
      clientId,
      undefined,
      clientAuth(metadata, clientSecret),
    );
    configuration[customFetch] = this.fetch;
    if (httpAllowed) allowInsecureRequests(configuration);
    enableNonRepudiationChecks(configuration);
    if (this.keySet !== null) {
      setJwksCache(configuration, { jwks: this.keySet.jwks, uat: agedUat(this.keySet) });
    }
    return configuration;
  }
}

/**
 * Checks the endpoints early. The library checks an endpoint only on use, when the response can no longer
 * distinguish an outage from a refusal.
 * @throws {IdentityProviderUnavailableError} if an endpoint of the code flow is missing or has no usable URL
 */
function assertEndpoints(metadata: ServerMetadata, httpAllowed: boolean): void {
  const protocols = httpAllowed ? ['https:', 'http:'] : ['https:'];
  for (const name of ['authorization_endpoint', 'token_endpoint', 'jwks_uri'] as const) {
    const address: unknown = metadata[name];
    if (address === undefined)
      throw new IdentityProviderUnavailableError(`the provider's metadata lacks ${name}`);
    if (typeof address !== 'string' || !protocols.includes(URL.parse(address)?.protocol ?? ''))
      throw new IdentityProviderUnavailableError(`the provider's ${name} is no address to use`);
  }
}

function agedUat(keySet: ExportedJWKSCache | null): number {
  return keySet === null ? 0 : keySet.uat - KEY_SET_AGE_SECONDS;
}

/**
 * Chooses how to send the client secret: in the Authorization header, unless the provider supports only the
 * form. Source: OpenID Connect Discovery 1.0, 3.
 */
function clientAuth(metadata: ServerMetadata, clientSecret: string): ClientAuth {
  const methods = metadata.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
  return methods.includes('client_secret_basic')
    ? ClientSecretBasic(clientSecret)
    : ClientSecretPost(clientSecret);
}

/**
 * Returns a fetch for the OpenID library that limits each request, including its body, to `timeoutMs`. It
 * throws IdentityProviderUnavailableError if the provider is unreachable or responds with 429 or 5xx.
 */
function providerFetch(timeoutMs: number): CustomFetch {
  return async (url, options) => {
    const { host } = new URL(url);
    const { method, redirect } = options;
    // The library's own limit covers a call with all its requests; this one covers a single request.
    const signal = AbortSignal.timeout(timeoutMs);
    const received = await request(host, async () => {
      const response = await fetch(url, {
        method,
        headers: options.headers,
        redirect,
        body: options.body ?? null,
        signal,
      });
      return { response, body: await response.arrayBuffer() };
    });
    const { status, headers } = received.response;
    if (status >= 500 || status === TOO_MANY_REQUESTS) {
      throw new IdentityProviderUnavailableError(`${host} answered ${String(status)}`);
    }
    return new Response(received.body.byteLength === 0 ? null : received.body, {
      status,
      headers,
    });
  };
}

async function request<T>(host: string, send: () => Promise<T>): Promise<T> {
  try {
    return await send();
  } catch (cause) {
    throw new IdentityProviderUnavailableError(`${host} cannot be reached`, { cause });
  }
}
