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
  'Sessions that can still be refreshed. Sessions without a refresh token are not listed. A short or empty page may still have a next page. Internal administrators can list the sessions of other users.';
const NOT_FOUND = 'There is no such session of yours.';

/** Lists and ends sessions that can be refreshed. Additive to the specification. */
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
    summary: 'End the session of the access token',
    description:
      'Every service refuses the session’s access and refresh tokens within two seconds, including those from bearer exchanges. No body.',
  })
  @ApiNoContentResponse({ description: 'Ended.' })
  @BodyNotJson('/auth/logout')
  @HttpCode(204)
  async logOut(@CurrentCaller() caller: Caller, @Req() request: FastifyRequest): Promise<void> {
    const { sessionId, tokenId } = caller;
    // A token from a release without sessions has no session, so only the token is revoked.
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
  @ProblemResponse(400, 'A query parameter is not valid; `errors` names it.', {
    owner: {
      summary: 'Only one of domain and identifier',
      detail: 'The request is not valid.',
      errors: { identifier: [BAD_OWNER] },
      instance: '/auth/sessions',
    },
  })
  @ProblemResponse(403, 'The caller may not list the sessions of other users.', {
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
    const { sessions, scanEnd } = await this.sessions.page(owner, maxAge, pageSize + 1, after);
    const page = sessions.slice(0, pageSize);
    const last = sessions.length > pageSize ? page.at(-1)! : scanEnd;
    const nextPageKey = last === null ? null : this.cursors.encode(list, [last.position, last.sid]);
    return { sessions: page.map((row) => sessionBody(row, caller)), nextPageKey };
  }

  private async namesOfCaller(caller: Caller): Promise<SessionOwnerNames> {
    return { subjects: await this.identities.subjectsOf(caller), userId: null };
  }

  /**
   * Returns every subject of the owner that the stores know. Sessions opened before an account was linked
   * have the subject of that time.
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
    description: 'Ends one of your own sessions, like a logout. Internal administrators can end any session.',
  })
  @ApiParam({ name: 'sid', description: 'The claim `sid`, as in the list.', example: SID })
  @ApiNoContentResponse({ description: 'The session has ended, now or before.' })
  @BodyNotJson(`/auth/sessions/${SID}`)
  @ProblemResponse(404, 'No session with a refresh token has this id, or it belongs to another user.', {
    none: { summary: 'Not your session', detail: NOT_FOUND, instance: `/auth/sessions/${SID}` },
  })
  @HttpCode(204)
  async endSession(
    @Param('sid') sessionId: string,
    @CurrentCaller() caller: Caller,
    @Req() request: FastifyRequest,
  ): Promise<void> {
    const identifier = canonicalIdentifier('sid', sessionId);
    const isKnown =
      isUuid(identifier) && (identifier === caller.sessionId || (await this.sessions.isKnown(identifier)));
    if (!isKnown) throw problems.notFound(NOT_FOUND);
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

/** Documents the 400 for a body that is not JSON. No body is required, but one that is sent is parsed. */
function BodyNotJson(path: string): MethodDecorator {
  const body = {
    summary: 'A body that is not JSON',
    detail: 'The request body is not valid JSON.',
    instance: path,
  };
  return ProblemResponse(400, 'The request has a body that is not valid JSON.', { body });
}

function subjectsIn(resolution: Resolution): readonly string[] {
  return resolution.outcome === 'resolved' ? resolution.identity.subjects : [];
}

/**
 * Returns the owner that the query names; null for the caller.
 * @throws {ProblemException} 400 when the query does not name a valid owner, 403 when the caller may not list
 * the sessions of others
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
