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

/** The API description of a token flow's route. */
interface FlowRoute {
  flow: TokenFlow;
  /** The dependencies whose outage causes a 503. Default: the database. */
  outage?: string;
  /** Path of the successor; marks the endpoint as obsolete. */
  successor?: string;
  /** The success response. Default: 200 with tokens. */
  success?: Response;
  /** Description of the 429 response. Default: the limits on issued tokens and configured rate limits. */
  tooSoon?: string;
  /** Headers of responses with any status. */
  headers?: NonNullable<Response['headers']>;
}

/** The header in which a client names its application. */
export const APPLICATION_KEY = {
  name: 'X-Application-Key',
  description:
    'The key of the calling application. Default: the configured application, if any. The application decides whether a refresh token is issued.',
  example: 'demo-backend',
};

/** Marks the controller of a token flow: anonymous, under /auth/token, with the rate limit per address. */
export function TokenFlowController(): ClassDecorator {
  return applyDecorators(Controller('auth/token'), Public(), UseGuards(AddressRateGuard));
}

/** A POST route of a token flow. It responds with 200 and `Cache-Control: no-store`. */
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
      // A request that is refused before it reaches the route gets no Deprecation header.
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
    'The user or session has reached its hourly limit of tokens, or the address or application has exceeded a configured rate limit.',
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

/** The public detail of each reason, for the examples. */
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

/** Returns the rejections of a flow from `REJECTION_STATUS`, one response per status. */
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
    description: `Unavailable or overloaded: ${outage}. The request was not decided: keep the current token and retry.`,
    headers: { ...RESPONSE_HEADERS.retryAfter, ...RESPONSE_HEADERS.noStore },
    content: problemContent(503, {
      database: {
        summary: 'The database is unavailable',
        detail: 'The database cannot be reached.',
        instance: '/auth/token/user',
      },
    }),
  };
}
