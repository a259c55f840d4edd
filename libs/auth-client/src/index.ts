export { createTrustRequest, signTrustRequest, trustSignedText } from './trust-request';
export type { TrustRequest, UnsignedTrustRequest } from './trust-request';
export { TrustRequestError } from './trust-request-error';
export { TokenProvider } from './token-provider';
export type { TokenProviderOptions } from './token-provider';
export { TokenRequestError } from './token-request-error';
export type { TokenRequestFailure } from './token-request-error';
