import { applyDecorators } from '@nestjs/common';
import {
  ApiBody,
  ApiConsumes,
  ApiOkResponse,
  ApiOperation,
  ApiSecurity,
  ProblemResponse,
  RESPONSE_HEADERS,
} from '@platform/open-api';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { UNPROVEN } from './unproven-application';

/** Other members are ignored, e.g. `token_type_hint` of RFC 7662. */
export class IntrospectionRequestDto extends createZodDto(
  z.object({ token: z.string().min(1).max(16_384).meta({ description: 'An access or a refresh token.' }) }),
) {}

export class IntrospectionDto extends createZodDto(
  z
    .looseObject({
      active: z.boolean(),
      token_type: z.literal('Bearer').optional().meta({ description: 'For access tokens only.' }),
    })
    .meta({
      id: 'Introspection',
      description: 'Whether the token is currently valid and, if so, its claims.',
    }),
) {}

export const INACTIVE: IntrospectionDto = { active: false };
const instance = '/auth/introspect';

const EXAMPLES = {
  active: {
    summary: 'Valid',
    value: {
      iss: 'https://auth.platform.example',
      sub: 'personid:1001',
      active: true,
      token_type: 'Bearer',
    },
  },
  inactive: { summary: 'Expired, revoked, or no token', value: INACTIVE },
};

/** Documents the route in the API document. */
export function IntrospectionRoute(): MethodDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'introspectToken',
      summary: 'Say whether a token is valid now',
      description:
        'RFC 7662. The state of a refresh token is revealed only to the application that it belongs to.',
    }),
    ApiSecurity('application'),
    ApiConsumes('application/x-www-form-urlencoded'),
    ApiBody({
      type: IntrospectionRequestDto,
      examples: { access: { summary: 'An access token', value: { token: '<ACCESS_TOKEN>' } } },
    }),
    ApiOkResponse({
      description: 'The state of the token.',
      type: IntrospectionDto.Output,
      examples: EXAMPLES,
      headers: RESPONSE_HEADERS.noStore,
    }),
    ProblemResponse(400, 'The token is missing.', {
      none: {
        summary: 'No token',
        detail: 'The request is not valid.',
        instance,
        errors: { token: ['is missing'] },
      },
    }),
    ProblemResponse(401, UNPROVEN, { unproven: { summary: 'Wrong secret', detail: UNPROVEN, instance } }),
    ProblemResponse(
      429,
      'This address or application asks too often. Only where a rate limit is configured.',
      {
        tooSoon: { summary: 'Too soon', detail: 'Too many token requests; try again in 3 s.', instance },
      },
      { ...RESPONSE_HEADERS.retryAfter, ...RESPONSE_HEADERS.noStore },
    ),
  );
}
