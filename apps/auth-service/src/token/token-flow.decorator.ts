import { Controller, Get, Header, HttpCode, Post, UseGuards, applyDecorators } from '@nestjs/common';
import { Public } from '@platform/access-tokens';
import {
  ApiResponse,
  ApiTags,
  OmitStandardResponses,
  RESPONSE_HEADERS,
  problemContent,
} from '@platform/open-api';
import { DEPRECATED_SINCE, deprecationHeaders, successorLink } from '../deprecation';
import { AddressRateGuard } from '../rate-limits/rate-limits.service';
import { REJECTIONS, REJECTION_STATUS, TokenRejectionReason } from '../rejections/token-rejection';
import type { Rejection, TokenFlow } from '../rejections/token-rejection';
import { TokenResponseDto, rejectedTokenResponse, successfulTokenResponse } from './token.dto';

type Response = Parameters<typeof ApiResponse>[0];

/** What an endpoint of a token flow responds with. */
interface FlowRoute {
  flow: TokenFlow;
  /** What may be out of reach or too busy; the database unless given. */
  outage?: string;
  /** Path of what replaces an obsolete endpoint. */
  successor?: string;
  /** What a success is, where it is not tokens. */
  success?: Response;
  /** When it responds with 429, where that is not a configured rate limit alone. */
  tooSoon?: string;
  /** Of responses of whatever status. */
  headers?: NonNullable<Response['headers']>;
}

/** The header in which a browser's backend names itself. */
export const APPLICATION_KEY = {
  name: 'X-Application-Key',
  description:
    'The application that asks; without it the configured default. It decides on the refresh token.',
  example: 'demo-backend',
};

/** Marks a token flow: an anonymous controller under /auth/token, limited in rate and audited. */
export function TokenFlowController(): ClassDecorator {
  return applyDecorators(Controller('auth/token'), Public(), UseGuards(AddressRateGuard));
}

/** The route of a token flow: POST, 200, never stored by a cache. */
export function TokenPost(path: string, route: FlowRoute): MethodDecorator {
  return applyDecorators(Post(path), HttpCode(200), tokenRoute(route));
}

export function TokenGet(path: string, route: FlowRoute): MethodDecorator {
  return applyDecorators(Get(path), tokenRoute(route));
}

function tokenRoute(route: FlowRoute): MethodDecorator {
  const { flow, outage, successor, success = TOKENS, headers } = route;
  const tooSoon = { ...TOO_SOON, description: route.tooSoon ?? TOO_SOON.description };
  const obsolete = (required: boolean): FlowRoute['headers'] =>
    successor === undefined ? {} : deprecationHeaders(successor, required);
  const responses = [success, ...rejections(flow), tooSoon, unavailable(outage)].map((response) =>
    ApiResponse({
      ...response,
      // A refusal of what never reached the endpoint has no headers of its own.
      headers: { ...response.headers, ...headers, ...obsolete(response === TOKENS) },
    }),
  );
  return applyDecorators(
    Header('Cache-Control', 'no-store'),
    ApiTags(successor === undefined ? 'Tokens' : 'Obsolete token endpoints'),
    OmitStandardResponses(413, 415),
    ...responses,
    ...(successor === undefined
      ? []
      : [Header('Deprecation', DEPRECATED_SINCE), Header('Link', successorLink(successor))]),
  );
}

const TOKENS: Response = {
  status: 200,
  description: 'Tokens.',
  type: TokenResponseDto.Output,
  examples: {
    both: {
      summary: 'With a refresh token',
      value: successfulTokenResponse('<ACCESS_TOKEN>', '<REFRESH_TOKEN>'),
    },
    access: {
      summary: 'For an application without refresh tokens',
      value: successfulTokenResponse('<ACCESS_TOKEN>', null),
    },
  },
  headers: RESPONSE_HEADERS.noStore,
};

const TOO_SOON = {
  status: 429,
  description:
    'This user or session got as many tokens as it may in an hour or, where a rate limit is configured, this address or application asks too often.',
  type: TokenResponseDto.Output,
  examples: {
    tooSoon: {
      summary: 'Too soon',
      value: rejectedTokenResponse(
        TokenRejectionReason.InvalidRequest,
        'Too many token requests; try again in 3 s.',
      ),
    },
  },
  headers: { ...RESPONSE_HEADERS.retryAfter, ...RESPONSE_HEADERS.noStore },
} satisfies Response;

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

/** The refusals of a flow, one response for each status, from the one table. */
function rejections(flow: TokenFlow): Response[] {
  const statuses = (reason: Rejection): number[] => {
    const cell: number | Record<string, number> | null = REJECTION_STATUS[flow][reason];
    return typeof cell === 'number' ? [cell] : Object.values(cell ?? {});
  };
  return [...new Set(REJECTIONS.flatMap(statuses))].map((status) => {
    const reasons = REJECTIONS.filter((reason) => statuses(reason).includes(status));
    const nameOf = (reason: Rejection): string => `${String(reason)} ${TokenRejectionReason[reason]}`;
    return {
      status,
      description: `Rejected. Reasons with status ${String(status)}: ${reasons.map(nameOf).join(', ')}.`,
      type: TokenResponseDto.Output,
      examples: Object.fromEntries(
        reasons.map((reason) => [
          TokenRejectionReason[reason],
          { summary: nameOf(reason), value: rejectedTokenResponse(reason, DETAILS[reason]) },
        ]),
      ),
      headers: RESPONSE_HEADERS.noStore,
    };
  });
}

function unavailable(outage = 'the database'): Response {
  return {
    status: 503,
    description: `Out of reach or too busy: ${outage}. No verdict on the request; keep the token you have and ask again.`,
    headers: { ...RESPONSE_HEADERS.retryAfter, ...RESPONSE_HEADERS.noStore },
    content: problemContent(503, {
      database: {
        summary: 'The database is away',
        detail: 'The database cannot be reached.',
        instance: '/auth/token/user',
      },
    }),
  };
}
