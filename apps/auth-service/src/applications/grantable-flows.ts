import type { TokenFlow } from '../token/rejection';

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
