import { ANSWER_HEADERS, jsonAnswer } from '@platform/service-defaults';
import type { OperationDocs } from '@platform/service-defaults';
import { z } from 'zod';
import type { Identity } from './identity';

const identity = z
  .object({
    subject: z
      .string()
      .meta({ description: '`personid:<n>`, `userid:<n>` or `technician:<provider>:<name>`.' }),
    identityType: z.enum(['svc-personid', 'internal-legacy', 'service-provider']),
    personId: z.int().nullable(),
    userId: z.int().nullable(),
    name: z.string().nullable(),
    personas: z.int().meta({ description: 'The persona bits that the token grants.' }),
    roles: z.array(z.string()),
    facilities: z.array(z.int()),
    groups: z.array(z.string()).meta({ description: 'Security groups.' }),
  })
  .meta({ id: 'CallerIdentity', description: 'Whom the token speaks for, in full.' }) satisfies z.ZodType<
  Omit<Identity, 'providerId'>
>;

export const GET_ME: OperationDocs = {
  ...{ id: 'getCallerIdentity', tag: 'Identity and keys', summary: 'Get the full identity behind the token' },
  description: 'For receivers of a token whose `overflow` names claims that did not fit into it.',
  answers: {
    200: jsonAnswer(
      'The identity.',
      identity,
      {
        customer: {
          summary: 'A customer',
          value: {
            subject: 'personid:1001',
            identityType: 'svc-personid',
            personId: 1001,
            userId: null,
            name: 'Carl Customer',
            personas: 2,
            roles: [],
            facilities: [501, 502],
            groups: [],
          },
        },
      },
      ANSWER_HEADERS.noStore,
    ),
  },
};
