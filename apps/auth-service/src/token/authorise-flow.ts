import type { Application } from '../applications/application';
import { mayUseFlow } from '../applications/application';
import type { TokenFlow } from '../token-endpoints/rejection';
import { TokenRejected, TokenRejectionReason } from '../token-endpoints/rejection';

/** Refuses a flow that is not among the application's. @throws {TokenRejected} InvalidGrant */
export function authoriseFlow(application: Application, flow: TokenFlow): void {
  if (mayUseFlow(application, flow)) return;
  throw new TokenRejected(
    TokenRejectionReason.InvalidGrant,
    'This flow is not permitted to this application.',
  );
}
