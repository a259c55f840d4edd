import { hasPersona, isPersonas, ALL_PERSONAS } from '@platform/personas';
import { z } from 'zod';

/** Text without control characters and lone surrogates: they would make signatures ambiguous and PostgreSQL refuse. */
export const plainText = (maxLength: number): z.ZodString =>
  z
    .string()
    .min(1)
    .max(maxLength)
    .regex(/^[^\p{Cc}\p{Cs}]*$/u, 'must not contain control characters');

/** One or more known persona bits. */
const requestedPersonas = z
  .number()
  .refine(
    (value) => isPersonas(value) && hasPersona(ALL_PERSONAS, value),
    'must be a combination of persona bits',
  );

/** An instant in UTC; the text is kept as sent, because it is signed. */
export const utcTimestamp = z.iso
  .datetime({ offset: true })
  .max(40)
  .regex(/(Z|\+00:00)$/, 'must be in UTC');

const optionalInteger = z.int().nullish();

/** Whom a trust request speaks for: the same in both trust flows. */
export const trustedUserFields = {
  persona: requestedPersonas,
  userName: plainText(256),
  serviceProviderID: optionalInteger,
  name: plainText(256).nullish(),
  userAccountID: optionalInteger,
  personID: optionalInteger,
} as const;

/** A query flag: `true` or `false`, in any case. */
export const queryFlag = z
  .string()
  .regex(/^(true|false)$/i, 'must be true or false')
  .transform((text) => text.toLowerCase() === 'true')
  .optional();
