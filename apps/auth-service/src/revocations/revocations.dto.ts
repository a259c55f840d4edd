import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { DEFAULT_MIN_DATE, REVOCATION_DOMAINS, parseMinDate } from './revocation';
import type { Revocation } from './revocation';

const MAX_PAGE = 10_000;
const DATE_EXPECTED = 'must be a date or a date-time with offset';

const minDate = z
  .string()
  .max(64)
  .transform((text, context) => {
    const instant = parseMinDate(text);
    if (instant !== null) return instant;
    context.addIssue({ code: 'custom', message: DATE_EXPECTED });
    return z.NEVER;
  })
  .default(DEFAULT_MIN_DATE);

/** Documents `minDate`: a schema with a transformation cannot describe its input. */
export const MIN_DATE_QUERY = {
  name: 'minDate',
  required: false,
  description: 'A date, or a date-time with offset; only later revocations are listed.',
  schema: { type: 'string', default: '2018-11-19', example: '2026-01-01T00:00:00Z' },
};

export const NOT_A_DATE = {
  summary: 'Not a date',
  detail: 'The request is not valid.',
  errors: { minDate: [DATE_EXPECTED] },
  instance: '/auth/revocations',
};

export const LIST_HEADERS = {
  'Revocations-As-Of': {
    description:
      'The current time of the clock that dates revocations. A caller that polls should count back from this time, not from the newest date, because clocks can be set back.',
    schema: { type: 'string', format: 'date-time' },
    example: '2026-03-01T12:00:00.000Z',
  },
  Link: {
    description: 'The next page, if there may be more entries.',
    schema: { type: 'string' },
    example: '</auth/revocations?minDate=2026-01-01T00%3A00%3A00.000Z&limit=1000&cursor=WyJ…>; rel="next"',
  },
};

/**
 * The list query. `limit` and `cursor` are additive to the specification: without them the response is the
 * whole list.
 */
export class RevocationListQueryDto extends createZodDto(
  z.object({
    minDate,
    limit: z
      .string()
      .regex(/^[1-9]\d{0,4}$/, `must be an integer from 1 to ${String(MAX_PAGE)}`)
      .transform(Number)
      .refine((limit) => limit <= MAX_PAGE, `must be an integer from 1 to ${String(MAX_PAGE)}`)
      .optional()
      .meta({
        type: 'integer',
        pattern: undefined,
        minimum: 1,
        maximum: MAX_PAGE,
        description: 'Number of entries per page. `Link` then has the address of the next page.',
        example: 1_000,
      }),
    cursor: z
      .string()
      .min(1)
      .max(8_192)
      .optional()
      .meta({ description: 'The cursor from the `Link` of the previous page.' }),
    domains: z.literal('all').optional().meta({
      description: 'Also lists revocations of sessions, subjects and applications. For validators.',
    }),
  }),
) {}

export class RevocationDto extends createZodDto(
  z
    .object({
      domain: z.enum(REVOCATION_DOMAINS),
      identifier: z.string(),
      revocationDate: z.string().meta({ format: 'date-time', description: 'When it was set.' }),
    })
    .meta({ description: 'A revocation and its date.' }) satisfies z.ZodType<Revocation>,
) {}

export const RITA: Revocation = {
  domain: 'svc-personid',
  identifier: '1003',
  revocationDate: '2026-03-02T09:15:00.123+00:00',
};
