import { pageKeyQuery, pageSizeQuery } from '@platform/service-defaults';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { facilityIdQuery, facilityIdText } from '../fields/request-fields';

export class ListTriggersDto extends createZodDto(
  z.object({ facilityId: facilityIdQuery, pageKey: pageKeyQuery, pageSize: pageSizeQuery }),
) {}

export class TriggerParams extends createZodDto(z.object({ facilityId: facilityIdText })) {}
