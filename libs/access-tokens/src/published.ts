// The package's exports for applications of any framework. Code in this workspace imports index.ts instead.
export { AccessTokenValidator, trustAuthService } from './verification/access-token-validator';
export type { AccessTokensOptions, AuthServiceTrust, OwnTokens } from './verification/access-token-validator';
export {
  AccessTokenError,
  FORBIDDEN,
  TokenVerificationUnavailableError,
  accessRefusal,
  bearerToken,
} from './token/access-token-error';
export type { AccessRefusal, AccessTokenFailure } from './token/access-token-error';
export { AccessTokenVerifier } from './verification/access-token-verifier';
export { isInternalAdministrator } from './token/caller';
export type { Caller } from './token/caller';
export { facilitiesHeldFor } from './token/held-facilities';
export { combineKeys, staticKeys } from './keys/keys';
export type { KeyMaterial, KeySource, PublicJwk } from './keys/keys';
export { authServiceKeys } from './keys/jwks';
export { RevocationFeed } from './revocations/revocation-feed';
export { StaleRevocationPosition } from './revocations/revocation-index';
export { httpRevocationSource } from './revocations/http-revocation-source';
export type { Revocation, RevocationPage, RevocationSource } from './revocations/revocation-index';
