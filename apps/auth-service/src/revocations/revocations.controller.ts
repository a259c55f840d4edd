import { Readable } from 'node:stream';
import {
  Controller,
  Get,
  HttpCode,
  Inject,
  Param,
  Put,
  Query,
  Req,
  Res,
  StreamableFile,
  applyDecorators,
} from '@nestjs/common';
import { CurrentCaller, RequireInternalAdministrator } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import {
  ApiOkResponse,
  ApiOperation,
  ApiParam,
  ApiQuery,
  ApiTags,
  ProblemResponse,
  RESPONSE_HEADERS,
} from '@platform/open-api';
import { ProblemException, SignedCursor, problems } from '@platform/service-defaults';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { TokenAuditService } from '../audit/token-audit.service';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import type { Revocation, RevocationDomain, RevocationKey, RevocationWritePolicy } from './revocation';
import {
  DOMAIN_CHOICE,
  REVOCATION_DOMAINS,
  REVOCATION_FORBIDDEN,
  SERVICE_FORBIDDEN,
  SPECIFIED_DOMAINS,
  canonicalIdentifier,
  isRevocationIdentifier,
  revocationDomain,
  toWire,
} from './revocation';
import {
  MIN_DATE_QUERY,
  LIST_HEADERS,
  NOT_A_DATE,
  RITA,
  RevocationDto,
  RevocationListQueryDto,
} from './revocations.dto';
import { RevocationsRepository } from './revocations.repository';
import type { RevocationPosition, RevocationRow } from './revocations.repository';
import { RevocationForbidden, RevocationQuotaExceeded } from './revocation-refusal';
import type { RevocationQuota } from './revocation-refusal';
import { RevocationsService } from './revocations.service';

const LIST = 'revocations';
/** Revocations read per statement for a request without `limit`. */
const WHOLE_LIST_STEP = 2_000;
const UNKNOWN_DOMAIN = `The domain must be one of ${DOMAIN_CHOICE}.`;
const BAD_IDENTIFIER = 'The identifier is not valid for this domain.';
const NOT_FOUND = 'There is no such revocation.';
const QUOTA_DETAILS = {
  'per-minute': 'You have reached the limit of revocations in a minute.',
  live: 'You have the maximum number of stored revocations. Wait until one expires.',
  'own-live':
    'You have the maximum number of stored revocations of your own tokens. Wait until one expires, or end sessions.',
  'application-per-minute':
    'The users of this application have reached their limit of revocations in a minute.',
  'application-live':
    'The users of this application have the maximum number of stored revocations. Wait until one expires.',
} as const satisfies Record<RevocationQuota, string>;
const instance = '/auth/revocations/svc-personid/1003';

function RevocationPath(): MethodDecorator {
  return applyDecorators(
    ApiParam({
      name: 'domain',
      description: `The domain of the revocation, in any letter case. \`jti\` (or \`token\`): one token; for a refresh token its whole session.
\`sid\`: every token of a session. The others cover the tokens issued up to the revocation: \`svc-personid\` those of a person,
\`internal-legacy\` of an internal user, \`sub\` of any subject, \`client_id\` of an application.`,
      schema: {
        type: 'string',
        examples: [...REVOCATION_DOMAINS, 'token'],
        example: 'svc-personid',
      },
    }),
    ApiParam({
      name: 'identifier',
      description:
        'The value of the claim `jti`, `sid`, `sub` or `client_id`, or the number of the person or user. UUIDs of tokens and sessions in any letter case.',
      example: '1003',
    }),
    ProblemResponse(400, 'The domain is unknown, or the identifier is not valid for it.', {
      domain: { summary: 'Unknown domain', detail: UNKNOWN_DOMAIN, instance: '/auth/revocations/user/1003' },
      identifier: {
        summary: 'Not an identifier',
        detail: BAD_IDENTIFIER,
        instance: '/auth/revocations/svc-personid/rita',
      },
    }),
  );
}

/** Documents the 403 and 429 responses of PUT. */
function PutRefusals(): MethodDecorator {
  return applyDecorators(
    ProblemResponse(
      403,
      'Only internal administrators may revoke sessions and subjects of others, applications, and tokens of services.',
      {
        other: { summary: 'Another user', detail: REVOCATION_FORBIDDEN['any-token'], instance },
        limited: {
          summary: 'Another user, with REVOCATION_WRITE_POLICY=self-or-admin',
          detail: REVOCATION_FORBIDDEN['self-or-admin'],
          instance,
        },
        service: {
          summary: 'A service',
          detail: SERVICE_FORBIDDEN,
          instance: '/auth/revocations/internal-legacy/9000',
        },
      },
    ),
    ProblemResponse(
      429,
      'The caller, or all users of its application together, have reached a limit on revocations.',
      {
        minute: { summary: 'Limit per minute', detail: QUOTA_DETAILS['per-minute'], instance },
        live: { summary: 'Limit of stored revocations', detail: QUOTA_DETAILS.live, instance },
        application: {
          summary: 'Limit per minute of one application',
          detail: QUOTA_DETAILS['application-per-minute'],
          instance,
        },
      },
      RESPONSE_HEADERS.retryAfter,
    ),
  );
}

/** The revocation registry. Source: authentication spec, Revocations. */
@Controller('auth/revocations')
@ApiTags('Revocations')
export class RevocationsController {
  private readonly cursors: SignedCursor;

  constructor(
    private readonly repository: RevocationsRepository,
    private readonly revocations: RevocationsService,
    private readonly audit: TokenAuditService,
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
  ) {
    this.cursors = SignedCursor.of(config);
  }

  @Get()
  @ApiOperation({
    operationId: 'listRevocations',
    summary: 'List the revocations after a date',
    description:
      'Ordered by date. The response is the whole list unless `limit` requests pages. Revocations of sessions, subjects and applications are listed only with `domains=all`.',
  })
  @ApiQuery(MIN_DATE_QUERY)
  @ApiOkResponse({
    description: 'The revocations, or one page of them.',
    type: [RevocationDto.Output],
    examples: {
      one: { summary: 'One revocation', value: [RITA] },
      none: { summary: 'No revocation after the date', value: [] },
    },
    headers: LIST_HEADERS,
  })
  @ProblemResponse(400, 'A query parameter is not valid; `errors` names it.', {
    minDate: NOT_A_DATE,
  })
  @RequireInternalAdministrator()
  async list(
    @Query() { minDate, limit, cursor, domains }: RevocationListQueryDto,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Revocation[] | StreamableFile> {
    const after = cursor === undefined ? null : this.readCursor(cursor);
    const listed = domains === undefined ? SPECIFIED_DOMAINS : REVOCATION_DOMAINS;
    // Read before the list. Pollers count back from this time; a later one could make them miss a revocation.
    void reply.header('revocations-as-of', (await this.repository.present()).toISOString());
    const rows = await this.repository.list(minDate, limit ?? WHOLE_LIST_STEP, after, listed);
    const last = rows.at(-1);
    if (limit === undefined && rows.length === WHOLE_LIST_STEP) return this.wholeList(rows, minDate, listed);
    if (limit !== undefined && last !== undefined && rows.length === limit)
      void reply.header('link', this.linkAfter(last, { minDate, limit, domains }));
    return rows.map(toWire);
  }

  /** Streams a list of any length, so that the replica holds one part of it at a time. */
  private wholeList(
    first: readonly RevocationRow[],
    minDate: Date,
    listed: readonly RevocationDomain[],
  ): StreamableFile {
    const repository = this.repository;
    async function* parts(): AsyncGenerator<string> {
      let separator = '[';
      for (let rows = first; rows.length > 0;) {
        yield `${separator}${rows.map((row) => JSON.stringify(toWire(row))).join(',')}`;
        separator = ',';
        if (rows.length < WHOLE_LIST_STEP) break;
        rows = await repository.list(minDate, WHOLE_LIST_STEP, rows.at(-1), listed);
      }
      yield ']';
    }
    return new StreamableFile(Readable.from(parts()), { type: 'application/json; charset=utf-8' });
  }

  @Get(':domain/:identifier')
  @ApiOperation({ operationId: 'getRevocation', summary: 'Get one revocation' })
  @RevocationPath()
  @ApiOkResponse({
    description: 'The revocation.',
    type: RevocationDto.Output,
    examples: { one: { summary: 'Of a person', value: RITA } },
  })
  @ProblemResponse(404, 'There is no such revocation.', {
    none: { summary: 'Not revoked', detail: NOT_FOUND, instance },
  })
  async get(@Param('domain') domain: string, @Param('identifier') identifier: string): Promise<Revocation> {
    const key = revocationKey(domain, identifier);
    const row = await this.repository.find(key.domain, key.identifier);
    if (row === null) throw problems.notFound(NOT_FOUND);
    return toWire(row);
  }

  @Put(':domain/:identifier')
  @ApiOperation({
    operationId: 'putRevocation',
    summary: 'Revoke now',
    description: `Sets the revocation's date to the current time, even if it existed before. It covers every token issued before the
response, and every service refuses those tokens within two seconds. The user can sign in again from the next second.

Limits (429) for callers who are not internal administrators, on revocations of tokens that are not their own: per caller
\`REVOCATIONS_PER_MINUTE\` (100) a minute and \`REVOCATIONS_PER_CALLER\` (10,000) stored; for all users of one application together
\`REVOCATIONS_PER_MINUTE_PER_APPLICATION\` (1,000) and \`REVOCATIONS_PER_APPLICATION\` (100,000). A stored revocation counts until it
expires. For technicians without an account, revocations of their own tokens count too, except of sessions. With
\`REVOCATION_WRITE_POLICY=self-or-admin\` only internal administrators may revoke others.`,
  })
  @RevocationPath()
  @ApiOkResponse({ description: 'The revocation is set. No body.' })
  @PutRefusals()
  @HttpCode(200)
  async put(
    @Param('domain') domain: string,
    @Param('identifier') identifier: string,
    @CurrentCaller() caller: Caller,
    @Req() request: FastifyRequest,
  ): Promise<void> {
    const key = revocationKey(domain, identifier);
    const origin = { address: this.audit.addressOf(request), traceId: request.id };
    await this.revocations.revoke(key, caller, origin).catch((error: unknown) => {
      throw revocationProblem(error, this.config.REVOCATION_WRITE_POLICY);
    });
  }

  private linkAfter(
    { revocationDate, domain, identifier }: RevocationPosition,
    { minDate, limit, domains }: Pick<RevocationListQueryDto, 'minDate' | 'limit' | 'domains'>,
  ): string {
    const next = new URLSearchParams({
      minDate: minDate.toISOString(),
      ...(domains === undefined ? {} : { domains }),
      limit: String(limit),
      cursor: this.cursors.encode(LIST, [revocationDate.toISOString(), domain, identifier]),
    });
    return `</auth/revocations?${next.toString()}>; rel="next"`;
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

/**
 * Reads the key from the path.
 * @throws {ProblemException} 400 for an unknown domain, or an identifier that is not valid for it
 */
function revocationKey(segment: string, identifier: string): RevocationKey {
  const domain = revocationDomain(segment);
  if (domain === null) {
    throw problems.badRequest(UNKNOWN_DOMAIN);
  }
  const canonical = canonicalIdentifier(domain, identifier);
  if (!isRevocationIdentifier(domain, canonical)) throw problems.badRequest(BAD_IDENTIFIER);
  return { domain, identifier: canonical };
}

/** Maps a refused revocation to its problem; returns any other error unchanged. */
function revocationProblem(error: unknown, policy: RevocationWritePolicy): unknown {
  if (error instanceof RevocationForbidden)
    return problems.forbidden(error.reason === 'service' ? SERVICE_FORBIDDEN : REVOCATION_FORBIDDEN[policy]);
  if (error instanceof RevocationQuotaExceeded)
    return new ProblemException({
      status: 429,
      detail: QUOTA_DETAILS[error.quota],
      headers: { 'Retry-After': String(error.retryAfterSeconds) },
    });
  return error;
}
