import { ANSWER_HEADERS, problemExample } from '@platform/service-defaults';
import type { AnswerDocs, ExampleDocs, HeaderDocs, OperationDocs } from '@platform/service-defaults';
import { z } from 'zod';
import { DEPRECATED_SINCE, successorLink } from '../deprecation';
import { REJECTION_STATUS, TokenRejectionReason } from './token-response';
import type { Rejection, TokenFlow } from './token-response';
import { rejectedTokenResponse, successfulTokenResponse } from './token-response';
import type { TokenResponse } from './token-response';

const REASONS = Object.values(TokenRejectionReason).filter((each) => typeof each === 'number');
const jwt = (description: string): z.ZodNullable<z.ZodString> => z.string().nullable().meta({ description });

const tokenResponse = z
  .object({
    accessToken: jwt('JWT, lives for 24 hours; null when rejected.'),
    refreshToken: jwt('JWT, lives for 365 days; null unless the application may have one.'),
    rejectionReason: z.literal(REASONS).meta({
      id: 'TokenRejectionReason',
      description: REASONS.map((each) => `${String(each)} ${TokenRejectionReason[each]}`).join(', '),
    }),
    rejectionDetails: z.string().nullable().meta({ description: 'For people; do not parse it.' }),
    wasSuccessful: z.boolean().meta({ description: 'True exactly when `rejectionReason` is 0.' }),
  })
  .meta({
    id: 'TokenResponse',
    description: 'What every token endpoint answers.',
  }) satisfies z.ZodType<TokenResponse>;

/** What callers read, as the code says it. */
const DETAILS: Record<Rejection, string> = {
  [TokenRejectionReason.AuthenticationFailed]: 'Authentication failed.',
  [TokenRejectionReason.AccessTokenIsNotValid]: 'The access token is not valid.',
  [TokenRejectionReason.RefreshThresholdExceeded]: 'The sign-in is too long ago.',
  [TokenRejectionReason.RefreshTokenIsNotValid]: 'The refresh token is not valid.',
  [TokenRejectionReason.UnsupportedRefreshIdentity]: 'This kind of identity cannot be refreshed.',
  [TokenRejectionReason.TokenRevoked]: 'The token has been revoked.',
  [TokenRejectionReason.InvalidRequest]: 'The request is not valid.',
  [TokenRejectionReason.InvalidGrant]: 'This flow is not permitted to this application.',
};

const REJECTIONS = REASONS.filter((each): each is Rejection => each !== TokenRejectionReason.Successful);

/** The statuses of a flow and the reasons that have them, from the one table. */
function reasonsByStatus(flow: TokenFlow): ReadonlyMap<number, Rejection[]> {
  const statuses = new Map<number, Rejection[]>();
  for (const reason of REJECTIONS) {
    const cell: number | Record<string, number> | null = REJECTION_STATUS[flow][reason];
    const found = cell === null ? [] : typeof cell === 'number' ? [cell] : Object.values(cell);
    for (const status of found) statuses.set(status, [...(statuses.get(status) ?? []), reason]);
  }
  return statuses;
}

function rejection(status: number, reasons: readonly Rejection[]): AnswerDocs {
  const examples = reasons.map((reason): [string, ExampleDocs] => [
    TokenRejectionReason[reason],
    {
      summary: `${String(reason)} ${TokenRejectionReason[reason]}`,
      value: rejectedTokenResponse(reason, DETAILS[reason]),
    },
  ]);
  const names = reasons.map((reason) => `${String(reason)} ${TokenRejectionReason[reason]}`);
  return {
    description: `Rejected. Reasons with status ${String(status)}: ${names.join(', ')}.`,
    body: tokenResponse,
    examples: Object.fromEntries(examples),
    headers: ANSWER_HEADERS.noStore,
  };
}

/** What says that an operation is obsolete, and what replaces it. */
export function deprecationHeaders(successor?: string): Record<string, HeaderDocs> {
  const text = { type: 'string' };
  const deprecation: HeaderDocs = {
    description: 'RFC 9745: since when the operation is deprecated.',
    ...{ schema: text, required: true, example: DEPRECATED_SINCE },
  };
  if (successor === undefined) return { Deprecation: deprecation };
  const link: HeaderDocs = {
    description: 'What replaces it.',
    ...{ schema: text, required: true, example: successorLink(successor) },
  };
  return { Deprecation: deprecation, Link: link };
}

const RESPONSE = successfulTokenResponse('<ACCESS_TOKEN>', '<REFRESH_TOKEN>');

interface FlowDocs extends Omit<OperationDocs, 'tag' | 'answers' | 'hasOwnBodyErrors'> {
  readonly flow: TokenFlow;
  /** What may be out of reach besides the database. */
  readonly outage?: string;
  /** Path of what replaces an obsolete endpoint. */
  readonly successor?: string;
  /** What a success is, where it is not tokens. */
  readonly succeeds?: Readonly<Record<number, AnswerDocs>>;
  /** Of answers of whatever status. */
  readonly extraHeaders?: Readonly<Record<string, HeaderDocs>>;
}

/** The words of a token endpoint: its refusals come from the status table. */
export function tokenOperation({
  flow,
  outage,
  successor,
  succeeds,
  extraHeaders = {},
  ...docs
}: FlowDocs): OperationDocs {
  const obsolete = successor === undefined ? {} : deprecationHeaders(successor);
  const rejections = [...reasonsByStatus(flow)].map(
    ([status, reasons]) => [status, rejection(status, reasons)] as const,
  );
  const answers: Record<number, AnswerDocs> = {
    ...(succeeds ?? { 200: succeeded() }),
    ...Object.fromEntries(rejections),
    429: tooSoon(),
    503: unavailable(outage),
  };
  const withHeaders = Object.entries(answers).map(([status, answer]) => [
    status,
    {
      ...answer,
      headers: {
        ...answer.headers,
        ...softened(extraHeaders),
        ...(status === '200' ? obsolete : softened(obsolete)),
      },
    },
  ]);
  return {
    ...docs,
    tag: successor === undefined ? 'Tokens' : 'Obsolete token endpoints',
    ...(successor === undefined ? {} : { deprecated: true }),
    hasOwnBodyErrors: true,
    answers: Object.fromEntries(withHeaders) as OperationDocs['answers'],
  };
}

/** Refusals of what never reached the endpoint have no headers of its own. */
function softened(headers: Readonly<Record<string, HeaderDocs>>): Record<string, HeaderDocs> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, docs]) => [name, { ...docs, required: false }]),
  );
}

function succeeded(): AnswerDocs {
  return {
    description: 'Tokens.',
    body: tokenResponse,
    examples: {
      both: { summary: 'With a refresh token', value: RESPONSE },
      access: {
        summary: 'For an application without refresh tokens',
        value: successfulTokenResponse('<ACCESS_TOKEN>', null),
      },
    },
    headers: ANSWER_HEADERS.noStore,
  };
}

function tooSoon(): AnswerDocs {
  const details = 'Too many token requests; try again in 3 s.';
  return {
    description: 'This address or application asks too often. Only where a rate limit is configured.',
    body: tokenResponse,
    examples: {
      tooSoon: {
        summary: 'Too soon',
        value: rejectedTokenResponse(TokenRejectionReason.InvalidRequest, details),
      },
    },
    headers: { ...ANSWER_HEADERS.retryAfter, ...ANSWER_HEADERS.noStore },
  };
}

function unavailable(outage = 'the database'): AnswerDocs {
  return {
    description: `Out of reach or too busy: ${outage}. No verdict on the request; keep the token you have and ask again.`,
    headers: { ...ANSWER_HEADERS.retryAfter, ...ANSWER_HEADERS.noStore },
    orProblem: {
      database: problemExample(
        'The database is away',
        { status: 503, detail: 'The database cannot be reached.' },
        '/auth/token/user',
      ),
    },
  };
}
