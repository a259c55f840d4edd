export { createTrustRequest, signTrustRequest, TrustRequestError, trustSignedText } from './trust-request';
export type { TrustRequest, UnsignedTrustRequest } from './trust-request';
export { TokenProvider, TokenRequestError } from './token-provider';
export type { TokenProviderOptions, TokenRequestFailure } from './token-provider';
