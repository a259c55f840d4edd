import { Injectable } from '@nestjs/common';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { auditedDetail, withinAttempt } from '../audit/token-attempt';
import { TokenAuditService } from '../audit/token-audit.service';
import { INTROSPECTION, isIntrospection } from '../rejections/token-endpoints';
import { TokenRejectionReason } from '../rejections/token-rejection';
import { TokenMetrics } from '../token/token-metrics.service';

/**
 * Counts introspections, and writes the refused ones into the audit trail, like requests for tokens: whoever
 * guesses secrets may do it here.
 */
@Injectable()
export class IntrospectionAudit {
  /** Why requests are refused; null: a row for the same reason was written a moment ago. */
  private readonly details = new WeakMap<object, string | null>();

  constructor(
    private readonly audit: TokenAuditService,
    private readonly metrics: TokenMetrics,
  ) {}

  /**
   * Makes the attempt of each introspection known to what handles it, and looks at every response, whoever
   * gave it.
   */
  track(instance: FastifyInstance): void {
    instance.addHook('preHandler', (request, _reply, done) => {
      if (isIntrospection(request)) withinAttempt(this.audit.attemptOf(request), done);
      else done();
    });
    instance.addHook('onResponse', (request, reply, done) => {
      if (isIntrospection(request)) this.record(request, reply);
      done();
    });
  }

  /**
   * Says why a request is refused, for the audit trail.
   * @param detail null: not to be written down once more
   */
  explain({ raw }: Pick<FastifyRequest, 'raw'>, detail: string | null): void {
    this.details.set(raw, detail);
  }

  private record(request: FastifyRequest, { statusCode: status }: FastifyReply): void {
    const reason = reasonOf(status);
    if (reason !== null) this.metrics.count(INTROSPECTION, reason);
    const detail = this.details.get(request.raw);
    if (status === 200 || detail === null) return;
    const row = { flow: INTROSPECTION, status, reason, detail: auditedDetail(detail), accessTokenId: null };
    this.audit.record({ ...this.audit.attemptOf(request), ...row });
  }
}

/** Null: an outage or a fault, and no verdict. */
function reasonOf(status: number): TokenRejectionReason | null {
  if (status >= 500) return null;
  if (status === 200) return TokenRejectionReason.Successful;
  return status === 401 ? TokenRejectionReason.AuthenticationFailed : TokenRejectionReason.InvalidRequest;
}
