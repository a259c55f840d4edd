import { Controller, Get, Inject, Query, Req, Res, applyDecorators } from '@nestjs/common';
import {
  AccessTokenVerifier,
  RequirePersona,
  accessProblem,
  bearerToken,
  callerOf,
} from '@platform/access-tokens';
import type { AuthenticatedRequest } from '@platform/access-tokens';
import {
  ApiOkResponse,
  ApiOperation,
  ApiQuery,
  ApiTags,
  ProblemResponse,
  RESPONSE_HEADERS,
} from '@platform/open-api';
import { Persona } from '@platform/personas';
import { CLOCK, SignedCursor, entityTag } from '@platform/service-defaults';
import { SECOND_MS } from '@platform/time';
import type { Clock } from '@platform/time';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { SettingError } from '../settings/setting-error';
import { SETTING_PROBLEMS } from '../settings/setting-problems';
import { SettingProblemResponse } from '../settings/setting-problems.filter';
import { requireInternalPartner } from '../settings/setting-request';
import type { Change, ChangePage, Position } from './change-log';
import { CHANGE_LIMITS, ChangeFeedService } from './change-feed.service';
import type { ChangeLimits } from './change-feed.service';
import { CHANGES, ChangesDto, ChangesQuery, WAIT_SECONDS } from './changes.dto';

/**
 * The decoded cursor: the highest identifier, the time of issue with the marks, and the open identifiers.
 * Marks and open identifiers are stored as distances from the highest one.
 */
type TokenContent = [
  upTo: number,
  issued: number | [issuedAt: number, ...marks: [distance: number, fingerprint: string][]],
  ...open: number[],
];

function refusal(reason: 'too-many-watchers' | 'changes-not-settled') {
  const { type, title, detail } = SETTING_PROBLEMS[reason];
  return { summary: title, type, title, detail, instance: '/platform/v1/changes' };
}

const Unavailable = (): MethodDecorator =>
  ProblemResponse(
    503,
    'The database cannot be reached, too many requests wait for changes, or an older transaction is still writing.',
    { watchers: refusal('too-many-watchers'), unsettled: refusal('changes-not-settled') },
    RESPONSE_HEADERS.retryAfter,
  );

function ListChanges(): MethodDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'listChanges',
      summary: 'List changes, or wait for one',
      description: `Returns every change, and those of one setting in commit order, also across replicas.
Pass \`next\` as \`after\` of the next request. Without \`subsystem\` it needs the persona InternalPartner, like the list of all settings. A change is returned within a second after the response to its write. An empty list may be returned before \`waitSeconds\` have passed.

To keep a copy: request without \`after\`, then read the settings, then repeat the request with the last \`next\`, and read the settings that changed.`,
    }),
    ApiQuery(WAIT_SECONDS),
    ApiOkResponse({
      description: 'The changes; empty if the wait ended without one.',
      type: ChangesDto.Output,
      examples: {
        one: { summary: 'A write', value: CHANGES },
        none: { summary: 'Nothing changed', value: { ...CHANGES, changes: [] } },
      },
      headers: RESPONSE_HEADERS.noStore,
    }),
    ProblemResponse(400, 'A query parameter is not valid; `errors` tells which.', {
      after: {
        summary: 'Not a cursor of this list',
        detail: '`after` is not one of this list.',
        errors: { after: ['is not valid'] },
        instance: '/platform/v1/changes',
      },
    }),
    SettingProblemResponse(
      'The cursor is too old, or the changes before it are undone: the settings were restored from a backup, or a failover lost changes.',
      'changes-expired',
    ),
    Unavailable(),
  );
}

/** Changes of settings. An addition to the specification. */
@Controller('platform/v1/changes')
@ApiTags('Changes')
@RequirePersona(Persona.InternalPartner, Persona.Customer, Persona.Owner)
export class ChangesController {
  constructor(
    private readonly feed: ChangeFeedService,
    private readonly cursors: SignedCursor,
    private readonly tokens: AccessTokenVerifier,
    @Inject(CHANGE_LIMITS) private readonly limits: ChangeLimits,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  @Get()
  @ListChanges()
  async list(
    @Query() query: ChangesQuery,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<ChangesDto> {
    const subsystemKey = query.subsystem?.key ?? null;
    if (subsystemKey === null) requireInternalPartner(request);
    const list = subsystemKey === null ? 'changes' : `changes of ${subsystemKey}`;
    const after = query.after === undefined ? null : this.positionOf(list, query.after);
    const gone = new AbortController();
    reply.raw.once('close', () => gone.abort());
    const waitMs = query.waitSeconds * SECOND_MS;
    const { subject, clientId } = callerOf(request as AuthenticatedRequest);
    const holder = { caller: subject, application: clientId ?? '' };
    const page = await this.feed.read({ after, subsystemKey, waitMs, signal: gone.signal, holder });
    // The token may have expired or been revoked during the wait.
    if (waitMs > 0) await this.verifyAgain(request);
    void reply.header('cache-control', 'no-store');
    return { changes: page.changes.map(changeJson), next: this.tokenOf(list, page) };
  }

  private tokenOf(list: string, { next: { upTo, open, marks = [] } }: ChangePage): string {
    const issuedAt = Math.floor(this.clock.now().getTime() / SECOND_MS);
    const marked = marks.map(({ id, fingerprint }) => [upTo - id, fingerprint]);
    return this.cursors.encode(list, [upTo, [issuedAt, ...marked], ...open.map((id) => upTo - id)]);
  }

  private positionOf(list: string, token: string): Position {
    const [upTo, issued, ...open] = this.cursors.decode(list, token, 'after') as TokenContent;
    // Release 1.0.0 issued a plain number here. It reads the array as a cursor that never expires.
    const [issuedAt, ...marked] = typeof issued === 'number' ? [issued] : issued;
    const ageSeconds = this.clock.now().getTime() / SECOND_MS - issuedAt;
    if (ageSeconds > this.limits.tokenLifetimeSeconds) throw new SettingError('changes-expired');
    const marks = marked.map(([distance, fingerprint]) => ({ id: upTo - distance, fingerprint }));
    return { upTo, open: open.map((distance) => upTo - distance), marks };
  }

  private async verifyAgain({ headers }: FastifyRequest): Promise<void> {
    try {
      await this.tokens.verify(bearerToken(headers.authorization) ?? '');
    } catch (error) {
      throw accessProblem(error);
    }
  }
}

function changeJson({
  subsystemName,
  settingName,
  operation,
  revision,
  occurredAt,
}: Change): ChangesDto['changes'][number] {
  const etag = operation === 'delete' ? null : entityTag(revision);
  return { subsystemName, settingName, operation, etag, changedAt: occurredAt.toISOString() };
}
