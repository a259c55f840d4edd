import type { AuthConfig } from '../config';

/** Everything that single sign-on is configured with. */
export interface OpenIdSettings {
  issuer: string;
  clientId: string;
  clientSecret: string;
  redirectUri: string;
  scope: string;
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
    timeoutMs: config.OPENID_TIMEOUT_MS,
    httpAllowed: config.OPENID_HTTP_ALLOWED,
  };
}
