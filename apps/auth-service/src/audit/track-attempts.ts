import type { FastifyInstance } from 'fastify';
import { tokenFlowOf } from '../token-endpoints/token-endpoints';
import { withinAttempt } from './token-attempt';
import type { TokenAttempts } from './token-attempts.service';

/** Makes the attempt of a token request known to everything that handles it. */
export function trackAttempts(instance: FastifyInstance, attempts: Pick<TokenAttempts, 'of'>): void {
  // A hook, not an interceptor: those cost every request their chain of observables. After the body, which names the application.
  instance.addHook('preHandler', (request, _reply, done) => {
    if (tokenFlowOf(request) === null) done();
    else withinAttempt(attempts.of(request), done);
  });
}
