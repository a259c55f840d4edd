import type { TokenFlow } from '../token-endpoints/rejection';

/** Every flow that an application can be permitted. */
export const GRANTABLE_FLOWS = [
  'refresh',
  'password',
  'trust',
  'trust-simple',
  'bearer',
  'openid',
  'windows',
] as const satisfies readonly TokenFlow[];
