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
 * The identity provider cannot be reached, is out of order, or does not know this service as its client.
 * Nothing is said about the user, so the caller gets an outage.
 */
export class IdentityProviderUnavailableError extends Error {
  override readonly name = 'IdentityProviderUnavailableError';
}

/**
 * OAuth errors that are about this service, not about the user or the sign-in: its registration with the
 * provider is wrong.
 */
const CLIENT_ERRORS: ReadonlySet<unknown> = new Set(['invalid_client', 'unauthorized_client']);
/** Codes of the library for responses that are no OAuth responses at all, e.g. a proxy's maintenance page. */
const UNUSABLE_ANSWERS: ReadonlySet<unknown> = new Set([
  'OAUTH_RESPONSE_IS_NOT_JSON',
  'OAUTH_RESPONSE_IS_NOT_CONFORM',
  'OAUTH_WWW_AUTHENTICATE_CHALLENGE',
]);
const MAX_CAUSES = 5;

/**
 * True when an error of the OpenID library, or what caused it, means that the provider could not do its work;
 * false when the provider, or the check of its ID token, refused the sign-in.
 */
export function isProviderUnavailable(error: unknown): boolean {
  let current = error;
  for (let depth = 0; depth < MAX_CAUSES && current instanceof Error; depth += 1) {
    if (current instanceof IdentityProviderUnavailableError) return true;
    const { code, error: oauthError } = current as { code?: unknown; error?: unknown };
    if (UNUSABLE_ANSWERS.has(code)) return true;
    // In a callback this error comes from the browser's form and proves nothing.
    if (code === 'OAUTH_RESPONSE_BODY_ERROR' && CLIENT_ERRORS.has(oauthError)) return true;
    current = current.cause;
  }
  return false;
}

/**
 * What may be logged of an error of the OpenID library: its kind. Its causes hold codes, tokens and claims,
 * and the `error` of a callback is whatever a browser sent, so only what looks like an OAuth error code is
 * shown.
 */
export function describeProviderError(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error';
  const { code, error: oauthError } = error as { code?: unknown; error?: unknown };
  const kind = typeof oauthError === 'string' && /^[a-z_]{1,50}$/.test(oauthError) ? oauthError : undefined;
  return [error.message, code, kind].filter((part) => typeof part === 'string').join(', ');
}

/** Everything that single sign-on is configured with. */
export interface OpenIdSettings {
  issuer: string;
  clientId: string;
  clientSecret: string;
  redirectUri: string;
  scope: string;
  /** How long ago a user may have proved who they are. */
  maxAgeSeconds: number;
  timeoutMs: number;
  /** Development only: issuer and redirect URI may be http. */
  httpAllowed: boolean;
}

/** The settings, or null where single sign-on is not configured. */
export function openIdSettingsOf(config: AuthConfig): OpenIdSettings | null {
  const {
    OPENID_ISSUER: issuer,
    OPENID_CLIENT_ID: clientId,
    OPENID_CLIENT_SECRET: clientSecret,
    OPENID_REDIRECT_URI: redirectUri,
  } = config;
  // The schema has seen to it that either all are there or none.
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

/** How old the provider's metadata may be when a sign-in is completed. */
const METADATA_MAX_AGE_MS = 10 * MINUTE_MS;
/**
 * How old when one is started: a provider that is down is noticed before the user is sent there, and yet a
 * flood of started sign-ins is no flood for the provider.
 */
const METADATA_FRESH_MS = SECOND_MS;
/**
 * The library looks for a new key in the provider's key set only when the set is at least this old, in
 * seconds. Sets are presented as that old, so that a rotation is noticed at once; the library still drops
 * them when they look 300 s old.
 */
const KEY_SET_AGE_SECONDS = 60;
const TOO_MANY_REQUESTS = 429;

interface KnownProvider {
  metadata: ServerMetadata;
  readAtMs: number;
}

/**
 * What is known of the identity provider: its metadata and its keys, each read over HTTP and kept for a
 * while.
 */
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

  /** A provider that answered within the last second. @throws {IdentityProviderUnavailableError} */
  async reachable(): Promise<Configuration> {
    return this.configurationOf(await this.notOlderThan(METADATA_FRESH_MS));
  }

  /**
   * The provider as it was at most ten minutes ago.
   * @throws {IdentityProviderUnavailableError} when it must be asked and is down
   */
  async recent(): Promise<Configuration> {
    return this.configurationOf(await this.notOlderThan(METADATA_MAX_AGE_MS));
  }

  /** Keeps the keys that a sign-in has downloaded for the next one. */
  rememberKeys(configuration: Configuration): void {
    const used = getJwksCache(configuration);
    if (used === undefined || used.uat === agedUat(this.keySet)) return;
    this.keySet = { jwks: used.jwks, uat: used.uat };
  }

  /** The next sign-in downloads the keys again. */
  forgetKeys(): void {
    this.keySet = null;
  }

  private async notOlderThan(maxAgeMs: number): Promise<ServerMetadata> {
    const { known } = this;
    if (known !== null && this.clock.monotonicMs() - known.readAtMs <= maxAgeMs) return known.metadata;
    // Callers that come meanwhile share one request.
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
   * One sign-in's view of the provider. Each has its own, because the library caches keys per configuration
   * by rules that notice a rotation only after a minute.
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
 * The library looks at an endpoint only when it uses it, which is too late for a response that tells an
 * outage from a refusal.
 * @throws {IdentityProviderUnavailableError} when an endpoint that the code flow needs is missing or no
 * address to use
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
 * The secret goes where the provider wants it; by default into the Authorization header. Source: OpenID
 * Connect Discovery 1.0, 3.
 */
function clientAuth(metadata: ServerMetadata, clientSecret: string): ClientAuth {
  const methods = metadata.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
  return methods.includes('client_secret_basic')
    ? ClientSecretBasic(clientSecret)
    : ClientSecretPost(clientSecret);
}

/**
 * A fetch for the OpenID library whose every request, its body included, ends within `timeoutMs`. It throws
 * IdentityProviderUnavailableError where the provider cannot be reached or says itself that it is out of
 * order.
 */
function providerFetch(timeoutMs: number): CustomFetch {
  return async (url, options) => {
    const { host } = new URL(url);
    const { method, redirect } = options;
    // The library's own limit covers each call with all its requests; this one covers each request.
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
