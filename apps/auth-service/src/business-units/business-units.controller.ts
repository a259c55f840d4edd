import { Controller, Get, Header, Param, Query, Res, applyDecorators } from '@nestjs/common';
import { CurrentCaller } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import {
  ApiOkResponse,
  ApiOperation,
  ApiParam,
  ApiTags,
  ProblemResponse,
  RESPONSE_HEADERS,
} from '@platform/open-api';
import { problems, sendJsonText } from '@platform/service-defaults';
import type { FastifyReply } from 'fastify';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { DEPRECATED_SINCE, deprecationHeaders } from '../deprecation';
import { CustomersClient } from './customers.client';

export class PltQueryDto extends createZodDto(
  z.object({
    plt: z
      .string()
      .min(1)
      .max(200)
      .regex(/^[^\p{Cc}\p{Cs}]*$/u)
      .meta({ description: 'The PLT code.', example: 'PLT-77' }),
  }),
) {}

const facilityIds = z.array(z.int());
const businessUnitIdentifier = z.int();

const DEPRECATED = {
  deprecated: true,
  description:
    'Deprecated: forwards the request with the caller’s token to the customers service. Call that service directly.',
};

/** Documents the failures of the customers service. */
function CustomersResponses(instance: string): MethodDecorator {
  return applyDecorators(
    ProblemResponse(403, 'The customers service refused this caller.', {
      refused: { summary: 'Refused', detail: 'The customers service refused this caller.', instance },
    }),
    ProblemResponse(404, 'The customers service knows no such business unit.', {
      unknown: { summary: 'Unknown', detail: 'The customers service knows no such business unit.', instance },
    }),
    ProblemResponse(422, 'The customers service refused the request.', {
      refused: { summary: 'Refused', detail: 'The customers service refused the request.', instance },
    }),
    ProblemResponse(
      429,
      'The customers service is asked too often.',
      { often: { summary: 'Too often', detail: 'The customers service is asked too often.', instance } },
      RESPONSE_HEADERS.retryAfter,
    ),
    ProblemResponse(502, 'The customers service failed, or its response cannot be used.', {
      failed: { summary: 'Failed', detail: 'The customers service failed.', instance },
    }),
    ProblemResponse(
      503,
      'The customers service cannot be reached, or tokens cannot be verified.',
      {
        away: { summary: 'Away', detail: 'The customers service cannot be reached at the moment.', instance },
      },
      RESPONSE_HEADERS.retryAfter,
    ),
  );
}

/**
 * Deprecated: clients should call the customers service directly. Source: authentication spec, Business
 * units.
 */
@Controller('auth/buid')
@ApiTags('Business units')
export class BusinessUnitsController {
  constructor(private readonly customers: CustomersClient) {}

  @Get(':businessUnitId/facility-access')
  @ApiOperation({
    operationId: 'listFacilitiesOfBusinessUnit',
    summary: 'List the facilities of a business unit',
    ...DEPRECATED,
  })
  @ApiParam({
    name: 'businessUnitId',
    description: 'The business unit.',
    type: 'integer',
    example: 77,
  })
  @ApiOkResponse({
    description: 'Numbers of facilities.',
    schema: { type: 'array', items: { type: 'integer' } },
    examples: { two: { summary: 'Two facilities', value: [501, 502] } },
    headers: deprecationHeaders(),
  })
  @ProblemResponse(400, 'The business unit is not an integer.', {
    number: {
      summary: 'Not a number',
      detail: 'The business unit must be an integer.',
      instance: '/auth/buid/x/facility-access',
    },
  })
  @CustomersResponses('/auth/buid/77/facility-access')
  @Header('Deprecation', DEPRECATED_SINCE)
  facilityAccess(
    @Param('businessUnitId') businessUnitId: string,
    @CurrentCaller() caller: Caller,
  ): Promise<number[]> {
    if (!/^-?\d{1,15}$/.test(businessUnitId))
      throw problems.badRequest('The business unit must be an integer.');
    const path = `/business-units/${String(Number(businessUnitId))}/facility-access`;
    return this.customers.get(path, caller.token, facilityIds);
  }

  /** Writes the bare integer to the reply, because Nest would not send it as JSON. */
  @Get()
  @ApiOperation({
    operationId: 'findBusinessUnitByPlt',
    summary: 'Find a business unit by its PLT code',
    ...DEPRECATED,
  })
  @ApiOkResponse({
    description: 'The number of the business unit.',
    schema: { type: 'integer' },
    examples: { found: { summary: 'Found', value: 77 } },
    headers: deprecationHeaders(),
  })
  @ProblemResponse(400, 'The PLT code is missing or not valid; see `errors`.', {
    missing: {
      summary: 'No code',
      detail: 'The request is not valid.',
      errors: { plt: ['is missing'] },
      instance: '/auth/buid',
    },
  })
  @CustomersResponses('/auth/buid')
  async byPlt(
    @Query() { plt }: PltQueryDto,
    @CurrentCaller() caller: Caller,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const query = new URLSearchParams({ plt });
    const found = await this.customers.get(
      `/business-units?${query.toString()}`,
      caller.token,
      businessUnitIdentifier,
    );
    void reply.header('Deprecation', DEPRECATED_SINCE);
    sendJsonText(reply, JSON.stringify(found));
  }
}
