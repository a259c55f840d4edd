import { Injectable } from '@nestjs/common';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { auditedDetail, withinAttempt } from '../audit/token-attempt';
import { TokenAuditService } from '../audit/token-audit.service';
import { TokenMetrics } from '../audit/token-metrics.service';
import { INTROSPECTION, isIntrospection } from '../rejections/token-endpoints';
import { TokenRejectionReason } from '../rejections/token-rejection';

/**
 * Counts introspections, and records refused ones in the audit trail like token requests, because secrets can
 * be guessed here too.
 */
@Injectable()
export class IntrospectionAudit {
  /**
   * Reasons of refusals, by request. Null: not audited, because a row with the same reason was written a
   * moment ago.
   */
  private readonly details = new WeakMap<object, string | null>();

  constructor(
    private readonly audit: TokenAuditService,
    private readonly metrics: TokenMetrics,
  ) {}

  /**
   * Starts the attempt of each introspection, so that its handlers can add details, and records every
   * response.
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
   * Notes the reason of a refusal for the audit trail.
   * @param detail null: the refusal is not recorded again
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

/** Returns null for an outage or a fault, which is no verdict. */
function reasonOf(status: number): TokenRejectionReason | null {
  if (status >= 500) return null;
  if (status === 200) return TokenRejectionReason.Successful;
  return status === 401 ? TokenRejectionReason.AuthenticationFailed : TokenRejectionReason.InvalidRequest;
}
