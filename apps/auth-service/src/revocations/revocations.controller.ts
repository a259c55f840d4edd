import { Controller, Get, HttpCode, Inject, Param, Put, Query, Req, Res } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { CurrentCaller, RequireInternalAdministrator } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import { Documented, Metrics, SignedCursor, problems } from '@platform/service-defaults';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { DataSource } from 'typeorm';
import { TokenAuditService } from '../audit/token-audit.service';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { findRevocation } from './find-revocation.query';
import type { RevocationPosition, RevocationRow } from './list-revocations.query';
import { listRevocations } from './list-revocations.query';
import { mayRevoke } from './may-revoke';
import { putRevocation } from './put-revocation.query';
import type { Revocation, RevocationDomain } from './revocation';
import { formatRevocationDate, isRevocationIdentifier, revocationDomain } from './revocation';
import { GET_REVOCATION, LIST_REVOCATIONS, PUT_REVOCATION } from './revocation-docs';
import { RevocationListQueryDto } from './revocations.dto';

const LIST = 'revocations';

/** The revocation registry. Source: authentication spec, Revocations. */
@Controller('auth/revocations')
export class RevocationsController {
  private readonly cursors: SignedCursor;
  private readonly revocations;

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
    private readonly attempts: TokenAuditService,
    metrics: Metrics,
  ) {
    this.revocations = metrics.counter('auth_revocations_total', 'Revocations set', ['domain']);
    this.cursors = new SignedCursor(config.CURSOR_HMAC_KEY);
  }

  @Get()
  @Documented(LIST_REVOCATIONS)
  @RequireInternalAdministrator()
  async list(
    @Query() { minDate, limit, cursor }: RevocationListQueryDto,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Revocation[]> {
    const after = cursor === undefined ? null : this.readCursor(cursor);
    const rows = await listRevocations(this.dataSource, minDate, limit ?? null, after);
    const last = rows.at(-1);
    if (limit !== undefined && last !== undefined && rows.length === limit) {
      const next = new URLSearchParams({
        minDate: minDate.toISOString(),
        limit: String(limit),
        cursor: this.cursors.encode(LIST, [last.revocationDate.toISOString(), last.domain, last.identifier]),
      });
      void reply.header('link', `</auth/revocations?${next.toString()}>; rel="next"`);
    }
    return rows.map(toWire);
  }

  @Get(':domain/:identifier')
  @Documented(GET_REVOCATION)
  async get(@Param('domain') domain: string, @Param('identifier') identifier: string): Promise<Revocation> {
    const key = revocationKey(domain, identifier);
    const row = await findRevocation(this.dataSource, key.domain, key.identifier);
    if (row === null) throw problems.notFound('There is no such revocation.');
    return toWire(row);
  }

  @Put(':domain/:identifier')
  @Documented(PUT_REVOCATION)
  @HttpCode(200)
  async put(
    @Param('domain') domain: string,
    @Param('identifier') identifier: string,
    @CurrentCaller() caller: Caller,
    @Req() request: FastifyRequest,
  ): Promise<void> {
    const key = revocationKey(domain, identifier);
    if (!mayRevoke(this.config.REVOCATION_WRITE_POLICY, caller, key.domain, key.identifier)) {
      throw problems.forbidden('You may revoke only yourself and your own tokens.');
    }
    await putRevocation(this.dataSource, key, {
      subject: caller.subject,
      clientId: caller.clientId,
      address: this.attempts.addressOf(request),
      traceId: request.id,
    });
    this.revocations.inc({ domain: key.domain });
  }

  private readCursor(cursor: string): RevocationPosition {
    const [revocationDate, domain, identifier] = this.cursors.decode(LIST, cursor) as [
      string,
      string,
      string,
    ];
    return { revocationDate: new Date(revocationDate), domain, identifier };
  }
}

/** @throws {ProblemException} 400 for an unknown domain, or an identifier that the domain cannot hold */
function revocationKey(
  segment: string,
  identifier: string,
): { domain: RevocationDomain; identifier: string } {
  const domain = revocationDomain(segment);
  if (domain === null) {
    throw problems.badRequest('The domain must be one of svc-personid, internal-legacy, jti, token.');
  }
  if (!isRevocationIdentifier(domain, identifier))
    throw problems.badRequest('The identifier is not valid for this domain.');
  return { domain, identifier };
}

function toWire({ domain, identifier, revocationDate }: RevocationRow): Revocation {
  return { domain, identifier, revocationDate: formatRevocationDate(revocationDate) };
}
