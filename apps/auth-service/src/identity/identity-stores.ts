/** Injection token of the identity stores, in the order in which they are asked. */
export const IDENTITY_STORES = Symbol('identity stores');
