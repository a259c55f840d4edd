export { AccessTokensModule } from './nest/access-tokens.module';
export { ServiceAccessTokenHost, accessProblem } from './nest/service-access-token-host';
export { AccessTokenValidator, trustAuthService } from './verification/access-token-validator';
export type { AccessTokensOptions } from './verification/access-token-validator';
export {
  CurrentCaller,
  Public,
  RequireInternalAdministrator,
  RequirePersona,
  callerOf,
  documentedAccess,
} from './nest/access-rules';
export type { AuthenticatedRequest, RouteRequirement } from './nest/access-rules';
export { AccessTokenVerifier } from './verification/access-token-verifier';
export {
  AccessTokenError,
  FORBIDDEN,
  TokenVerificationUnavailableError,
  bearerToken,
} from './token/access-token-error';
export {
  ACCESS_TOKEN_TYP,
  CUSTOMER_GLOBAL_ADMINISTRATOR,
  accessTokenClaims,
  isInternalAdministrator,
} from './token/caller';
export type { Caller } from './token/caller';
export { facilitiesHeldFor } from './token/held-facilities';
export { combineKeys, KeyRing, staticKeys, createVerificationKey } from './keys/keys';
export type { KeyQuery, KeySource, VerificationKey } from './keys/keys';
export { authServiceKeys } from './keys/jwks';
export {
  authServiceConfigShape,
  authServiceTokens,
  configuredTokens,
  hmacKeyList,
  tokenConfigShape,
  withoutRepetition,
} from './verification/token-settings';
export type { HmacKey, TokenConfig } from './verification/token-settings';
export { RevocationFeed } from './revocations/revocation-feed';
export { StaleRevocationPosition } from './revocations/revocation-index';
export { httpRevocationSource } from './revocations/http-revocation-source';
export type {
  RevocableToken,
  Revocation,
  RevocationPage,
  RevocationSource,
} from './revocations/revocation-index';
