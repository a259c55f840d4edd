import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { DEFAULT_MIN_DATE, parseMinDate } from './revocation';

const MAX_PAGE = 10_000;

const minDate = z
  .string()
  .max(64)
  .transform((text, context) => {
    const instant = parseMinDate(text);
    if (instant !== null) return instant;
    context.addIssue({ code: 'custom', message: 'must be a date or a date-time with offset' });
    return z.NEVER;
  })
  .default(DEFAULT_MIN_DATE);

/** `limit` and `cursor` are additive: without them the whole list is answered, as the specification says. */
export class RevocationListQueryDto extends createZodDto(
  z.object({
    minDate,
    limit: z
      .string()
      .regex(/^[1-9]\d{0,4}$/, `must be an integer from 1 to ${String(MAX_PAGE)}`)
      .transform(Number)
      .refine((limit) => limit <= MAX_PAGE, `must be an integer from 1 to ${String(MAX_PAGE)}`)
      .optional(),
    cursor: z.string().min(1).max(8_192).optional(),
  }),
) {}
