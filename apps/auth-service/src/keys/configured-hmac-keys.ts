import { withoutRepetition } from '@platform/access-tokens';
import type { HmacKey, TokenConfig } from '@platform/access-tokens';

/** The keys of refresh tokens as configuration has them. */
export interface RefreshKeyConfig {
  REFRESH_TOKEN_HMAC_KEY: Buffer;
  REFRESH_TOKEN_HMAC_KEY_ID: string;
  REFRESH_TOKEN_PREVIOUS_HMAC_KEYS: readonly HmacKey[];
}

/** Every key that verifies HS256 access tokens of ours; the first one signs. */
export function accessTokenKeys(config: TokenConfig): HmacKey[] {
  const current = { kid: config.ACCESS_TOKEN_HMAC_KEY_ID, secret: config.ACCESS_TOKEN_HMAC_KEY };
  return withoutRepetition(current, config.ACCESS_TOKEN_PREVIOUS_HMAC_KEYS);
}

/** Every key that verifies refresh tokens; the first one signs. */
export function refreshTokenKeys(config: RefreshKeyConfig): HmacKey[] {
  const current = { kid: config.REFRESH_TOKEN_HMAC_KEY_ID, secret: config.REFRESH_TOKEN_HMAC_KEY };
  return withoutRepetition(current, config.REFRESH_TOKEN_PREVIOUS_HMAC_KEYS);
}

/** True when a secret of `some` is also one of `others`: then a token of one kind could pass for the other. */
export function sharesSecret(some: readonly HmacKey[], others: readonly HmacKey[]): boolean {
  return some.some(({ secret: one }) => others.some(({ secret: other }) => one.equals(other)));
}

/** True when no key id names two keys. */
export function hasDistinctKeyIds(keys: readonly HmacKey[]): boolean {
  return new Set(keys.map(({ kid }) => kid)).size === keys.length;
}
