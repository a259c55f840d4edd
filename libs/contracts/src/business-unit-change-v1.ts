import { z } from 'zod';
import { identifier, instant, integerId, timeZone } from './fields';
import { defineMessage, type MessageOf } from './message-contract';

/** What happened to a business unit. Source: task messaging spec, Events; fields from the design decisions. */
export const BusinessUnitChangeV1 = defineMessage({
  name: 'IBusinessUnitChangeV1',
  bus: 'main',
  description:
    'Published by the customers service. On activation the task service schedules recurring generation for each facility, on deactivation it removes it.',
  schema: z.object({
    eventId: identifier,
    occurredAtUtc: instant,
    businessUnitId: integerId,
    facilityIds: z.array(integerId),
    changeType: z.enum(['Activated', 'Deactivated', 'Updated']),
    timeZone: timeZone.optional(),
  }),
});
export type BusinessUnitChangeV1 = MessageOf<typeof BusinessUnitChangeV1>;
