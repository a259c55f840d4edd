import { Controller, Delete, Get, Header, HttpCode, Inject, Param, Post, Query, Req } from '@nestjs/common';
import { CurrentCaller, isInternalAdministrator } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import {
  ApiNoContentResponse,
  ApiOkResponse,
  ApiOperation,
  ApiParam,
  ApiTags,
  PagedQuery,
  ProblemResponse,
  RESPONSE_HEADERS,
} from '@platform/open-api';
import { SignedCursor, problems } from '@platform/service-defaults';
import type { FastifyRequest } from 'fastify';
import { TokenAuditService } from '../audit/token-audit.service';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { IdentitiesService } from '../identity/identities.service';
import { parseSubject } from '../identity/identity';
import type { Resolution } from '../identity/identity';
import { canonicalIdentifier, isUuid } from '../revocations/revocation';
import type { RevocationKey } from '../revocations/revocation';
import { RevocationForbidden } from '../revocations/revocation-refusal';
import { RevocationsService } from '../revocations/revocations.service';
import {
  BAD_OWNER,
  SESSION_PAGE,
  SID,
  SessionListQueryDto,
  SessionPageDto,
  ownerInQuery,
} from './sessions.dto';
import type { SessionOwner, SessionOwnerNames, SessionPosition, SessionRow } from './sessions.repository';
import { SessionsRepository } from './sessions.repository';

const NOT_YOURS = 'Only internal administrators may list the sessions of others.';
const LISTED =
  'Sessions that can still be refreshed; those without a refresh token are not listed. A page may be short or empty and still have a next one. Internal administrators can ask for others.';
const NOT_FOUND = 'There is no such session of yours.';

/** What has signed in and can be refreshed, and ending it. Additive to the specification. */
@Controller('auth')
@ApiTags('Sessions')
export class SessionsController {
  private readonly cursors: SignedCursor;

  constructor(
    private readonly sessions: SessionsRepository,
    private readonly revocations: RevocationsService,
    private readonly audit: TokenAuditService,
    private readonly identities: IdentitiesService,
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
  ) {
    this.cursors = SignedCursor.of(config);
  }

  @Post('logout')
  @ApiOperation({
    operationId: 'logOut',
    summary: 'End the session of the token sent',
    description:
      'Every service refuses its access and refresh tokens within two seconds, those of bearer exchanges included. No body.',
  })
  @ApiNoContentResponse({ description: 'Ended.' })
  @BodyNotJson('/auth/logout')
  @HttpCode(204)
  async logOut(@CurrentCaller() caller: Caller, @Req() request: FastifyRequest): Promise<void> {
    const { sessionId, tokenId } = caller;
    // A token from before there were sessions stands alone.
    const own: RevocationKey =
      sessionId === null ? { domain: 'jti', identifier: tokenId } : { domain: 'sid', identifier: sessionId };
    await this.end(own, caller, request);
  }

  @Get('sessions')
  @ApiOperation({
    operationId: 'listSessions',
    summary: 'List the sessions of the caller, newest first',
    description: LISTED,
  })
  @PagedQuery()
  @ApiOkResponse({
    description: 'One page.',
    type: SessionPageDto.Output,
    examples: { one: { summary: 'One session', value: SESSION_PAGE } },
    headers: RESPONSE_HEADERS.noStore,
  })
  @ProblemResponse(400, 'A query parameter is not valid; `errors` tells which.', {
    owner: {
      summary: 'Half an owner',
      detail: 'The request is not valid.',
      errors: { identifier: [BAD_OWNER] },
      instance: '/auth/sessions',
    },
  })
  @ProblemResponse(403, 'Somebody else’s sessions.', {
    others: { summary: 'Not an administrator', detail: NOT_YOURS, instance: '/auth/sessions' },
  })
  @Header('Cache-Control', 'no-store')
  async list(@Query() query: SessionListQueryDto, @CurrentCaller() caller: Caller): Promise<SessionPageDto> {
    const asked = ownerFor(caller, query);
    const { pageKey, pageSize } = query;
    const list = `sessions of ${JSON.stringify(asked ?? { subject: caller.subject })}`;
    const after = pageKey === undefined ? undefined : position(this.cursors.decode(list, pageKey));
    const owner = asked === null ? await this.namesOfCaller(caller) : await this.namesOf(asked);
    const maxAge = this.config.REFRESH_MAX_AGE;
    const { sessions, lookedUntil } = await this.sessions.page(owner, maxAge, pageSize + 1, after);
    const page = sessions.slice(0, pageSize);
    const last = sessions.length > pageSize ? page.at(-1)! : lookedUntil;
    const nextPageKey = last === null ? null : this.cursors.encode(list, [last.position, last.sid]);
    return { sessions: page.map((row) => sessionBody(row, caller)), nextPageKey };
  }

  private async namesOfCaller(caller: Caller): Promise<SessionOwnerNames> {
    return { subjects: await this.identities.subjectsOf(caller), userId: null };
  }

  /**
   * The owner by every name that the stores know: sessions from before an account was linked name it as it
   * was then.
   */
  private async namesOf(name: SessionOwner): Promise<SessionOwnerNames> {
    if ('userId' in name) {
      const { userId } = name;
      const resolution = await this.identities.resolveSubject({ kind: 'user', userId });
      return { subjects: subjectsIn(resolution), userId };
    }
    const subject = parseSubject(name.subject);
    if (subject === null || subject.kind === 'technician-name')
      return { subjects: [name.subject], userId: null };
    const resolution = await this.identities.resolveSubject(subject);
    return { subjects: [...new Set([name.subject, ...subjectsIn(resolution)])], userId: null };
  }

  @Delete('sessions/:sid')
  @ApiOperation({
    operationId: 'endSession',
    summary: 'End a session',
    description: 'One’s own, or as internal administrator any. As logging out of it.',
  })
  @ApiParam({ name: 'sid', description: 'Claim `sid`, as listed.', example: SID })
  @ApiNoContentResponse({ description: 'Ended, or ended before.' })
  @BodyNotJson(`/auth/sessions/${SID}`)
  @ProblemResponse(404, 'No session with a refresh token, or somebody else’s.', {
    none: { summary: 'Not yours', detail: NOT_FOUND, instance: `/auth/sessions/${SID}` },
  })
  @HttpCode(204)
  async endSession(
    @Param('sid') sid: string,
    @CurrentCaller() caller: Caller,
    @Req() request: FastifyRequest,
  ): Promise<void> {
    const identifier = canonicalIdentifier('sid', sid);
    const isThere =
      isUuid(identifier) && (identifier === caller.sessionId || (await this.sessions.isKnown(identifier)));
    if (!isThere) throw problems.notFound(NOT_FOUND);
    await this.end({ domain: 'sid', identifier }, caller, request).catch((error: unknown) => {
      throw error instanceof RevocationForbidden ? problems.notFound(NOT_FOUND) : error;
    });
  }

  private end(key: RevocationKey, caller: Caller, request: FastifyRequest): Promise<void> {
    return this.revocations.revoke(key, caller, {
      address: this.audit.addressOf(request),
      traceId: request.id,
    });
  }
}

/** A body is not asked for, but one that comes is read. */
function BodyNotJson(path: string): MethodDecorator {
  const body = {
    summary: 'A body that is no JSON',
    detail: 'The request body is not valid JSON.',
    instance: path,
  };
  return ProblemResponse(400, 'A body was sent that is not valid JSON.', { body });
}

function subjectsIn(resolution: Resolution): readonly string[] {
  return resolution.outcome === 'resolved' ? resolution.identity.subjects : [];
}

/**
 * Null: the caller.
 * @throws {ProblemException} 400 for half an owner, 403 when the caller may not ask for others
 */
function ownerFor(caller: Caller, query: SessionListQueryDto): SessionOwner | null {
  const asked = ownerInQuery(query);
  if (asked === undefined)
    throw problems.badRequest('The request is not valid.', { identifier: [BAD_OWNER] });
  if (asked !== null && !isInternalAdministrator(caller)) throw problems.forbidden(NOT_YOURS);
  return asked;
}

function position([at, sid]: unknown[]): SessionPosition {
  return { position: String(at), sid: String(sid) };
}

function sessionBody(row: SessionRow, { sessionId }: Caller): SessionPageDto['sessions'][number] {
  const { sid, flow, applicationKey, createdAt, lastUsedAt, expiresAt } = row;
  const [created, used, expires] = [createdAt, lastUsedAt, expiresAt].map((instant) => instant.toISOString());
  return {
    sid,
    flow,
    applicationKey,
    createdAt: created!,
    lastUsedAt: used!,
    expiresAt: expires!,
    current: sid === sessionId,
  };
}
