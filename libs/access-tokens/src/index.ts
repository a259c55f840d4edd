export { AccessTokensModule } from './nest/access-tokens.module';
export type { AccessTokensAsyncOptions, AccessTokensOptions } from './nest/access-tokens.module';
export {
  CurrentCaller,
  PUBLIC_ROUTE,
  Public,
  RequireInternalAdministrator,
  RequirePersona,
  callerOf,
} from './nest/access-rules';
export type { AuthenticatedRequest } from './nest/access-rules';
export { documentedAccess } from './nest/documented-access';
export { accessProblem } from './nest/access-problems';
export { bearerToken } from './nest/bearer-token';
export { AccessTokenVerifier } from './token/access-token-verifier';
export type { AccessTokenVerifierOptions, RevocationCheck } from './token/access-token-verifier';
export { CLOCK_TOLERANCE_SECONDS, SignedTokenVerifier } from './token/signed-token-verifier';
export type { LegacyIssuer, SignedTokenRules } from './token/signed-token-verifier';
export { AccessTokenError, TokenVerificationUnavailableError } from './token/access-token-error';
export type { AccessTokenFailure } from './token/access-token-error';
export { ACCESS_TOKEN_TYP, REFRESH_TOKEN_TYP, accessTokenClaims, registeredClaims } from './token/claims';
export type { AccessTokenClaims, IdentityType, RegisteredClaims } from './token/claims';
export { CUSTOMER_GLOBAL_ADMINISTRATOR, callerFromClaims, isInternalAdministrator } from './token/caller';
export type { Caller } from './token/caller';
export { KEY_ID_PATTERN, SIGNING_ALGORITHMS } from './token/parse-token';
export type { SigningAlgorithm } from './token/parse-token';
export { combineKeys } from './keys/key-source';
export type { KeyQuery, KeySource } from './keys/key-source';
export { KeyRing, staticKeys } from './keys/key-ring';
export { authServiceConfigShape, authServiceTokens } from './auth-service-tokens';
export { authServiceKeys, jwksKeys } from './keys/jwks-keys';
export type { JwksKeysOptions } from './keys/jwks-keys';
export { configuredTokens, hmacKeyList, tokenConfigShape, withoutRepetition } from './keys/token-settings';
export type { ConfiguredLegacyIssuer, ConfiguredTokens, HmacKey, TokenConfig } from './keys/token-settings';
export { createVerificationKey } from './keys/verification-key';
export type { KeyMaterial, VerificationKey } from './keys/verification-key';
export { RevocationFeed } from './revocations/revocation-feed';
export type { RevocationFeedOptions } from './revocations/revocation-feed';
export { httpRevocationSource, RevocationListError } from './revocations/http-revocation-source';
export type { HttpRevocationSourceOptions } from './revocations/http-revocation-source';
export { revocation } from './revocations/revocation';
export type {
  RevocableToken,
  Revocation,
  RevocationDomain,
  RevocationSource,
} from './revocations/revocation';
