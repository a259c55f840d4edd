import { Controller, Get, Header, Param, Query, Res } from '@nestjs/common';
import { CurrentCaller } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import { Documented, problems, sendJsonText } from '@platform/service-defaults';
import type { FastifyReply } from 'fastify';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { DEPRECATED_SINCE } from '../deprecation';
import { FIND_BY_PLT, LIST_FACILITIES } from './business-unit-docs';
import { CustomersClient } from './customers.client';

export class PltQueryDto extends createZodDto(
  z.object({
    plt: z
      .string()
      .min(1)
      .max(200)
      .regex(/^[^\p{Cc}\p{Cs}]*$/u),
  }),
) {}

const facilityIds = z.array(z.int());
const businessUnitIdentifier = z.int();

/** Deprecated: consumers should ask the customers service directly. Source: authentication spec, Business units. */
@Controller('auth/buid')
export class BusinessUnitsController {
  constructor(private readonly customers: CustomersClient) {}

  @Get(':businessUnitId/facility-access')
  @Documented(LIST_FACILITIES)
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

  /** One bare integer, which Nest would not send as JSON by itself. */
  @Get()
  @Documented(FIND_BY_PLT)
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
