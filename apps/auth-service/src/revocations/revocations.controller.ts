import { Controller, Get, HttpCode, Inject, Param, Put, Query, Req, Res } from '@nestjs/common';
import { CurrentCaller, RequireInternalAdministrator } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import { Documented, SignedCursor, problems } from '@platform/service-defaults';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { TokenAuditService } from '../audit/token-audit.service';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import type { Revocation, RevocationKey } from './revocation';
import { isRevocationIdentifier, revocationDomain, toWire } from './revocation';
import { GET_REVOCATION, LIST_REVOCATIONS, PUT_REVOCATION } from './revocation-docs';
import { RevocationListQueryDto } from './revocations.dto';
import { RevocationsRepository } from './revocations.repository';
import type { RevocationPosition } from './revocations.repository';
import { RevocationsService } from './revocations.service';

const LIST = 'revocations';

/** The revocation registry. Source: authentication spec, Revocations. */
@Controller('auth/revocations')
export class RevocationsController {
  private readonly cursors: SignedCursor;

  constructor(
    private readonly repository: RevocationsRepository,
    private readonly revocations: RevocationsService,
    private readonly audit: TokenAuditService,
    @Inject(AUTH_CONFIG) config: AuthConfig,
  ) {
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
    const rows = await this.repository.list(minDate, limit ?? null, after);
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
    const row = await this.repository.find(key.domain, key.identifier);
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
    const origin = { address: this.audit.addressOf(request), traceId: request.id };
    await this.revocations.revoke(key, caller, origin);
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
function revocationKey(segment: string, identifier: string): RevocationKey {
  const domain = revocationDomain(segment);
  if (domain === null) {
    throw problems.badRequest('The domain must be one of svc-personid, internal-legacy, jti, token.');
  }
  if (!isRevocationIdentifier(domain, identifier))
    throw problems.badRequest('The identifier is not valid for this domain.');
  return { domain, identifier };
}
