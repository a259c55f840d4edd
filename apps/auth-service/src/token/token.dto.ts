import { ALL_PERSONAS, hasPersona, isPersonas } from '@platform/personas';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { REASONS, TokenRejectionReason } from '../rejections/token-rejection';
import type { Rejection } from '../rejections/token-rejection';

/**
 * Text without control characters and lone surrogates: they would make signatures ambiguous and PostgreSQL
 * refuse.
 */
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

/** The secret of the application that asks, in flows that public clients use too. */
export const optionalSharedSecret = z.string().min(1).max(1_024).nullish().meta({
  description:
    'Proves the application. A confidential one has to send it; for others it may be left out. It is never logged.',
});

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

const jwt = (description: string): z.ZodNullable<z.ZodString> => z.string().nullable().meta({ description });

/** The response of every token endpoint. Source: authentication spec, TokenResponse. */
export class TokenResponseDto extends createZodDto(
  z
    .object({
      accessToken: jwt('JWT, lives for 24 hours; null when rejected.'),
      refreshToken: jwt('JWT, lives for 365 days; null unless the application may have one.'),
      rejectionReason: z.literal(REASONS).meta({
        id: 'TokenRejectionReason',
        description: REASONS.map((each) => `${String(each)} ${TokenRejectionReason[each]}`).join(', '),
      }),
      rejectionDetails: z.string().nullable().meta({ description: 'For people; do not parse it.' }),
      wasSuccessful: z.boolean().meta({ description: 'True exactly when `rejectionReason` is 0.' }),
    })
    // The id keeps "string or null", which @nestjs/swagger takes for an array in a schema without one.
    .meta({ id: 'TokenResponse', description: 'What every token endpoint answers.' }),
) {}

export type TokenResponse = z.output<typeof TokenResponseDto.schema>;

/** The response that carries tokens. Only TokenIssuer calls this. */
export function successfulTokenResponse(accessToken: string, refreshToken: string | null): TokenResponse {
  return {
    accessToken,
    refreshToken,
    rejectionReason: TokenRejectionReason.Successful,
    rejectionDetails: null,
    wasSuccessful: true,
  };
}

/** The response that says why there are no tokens. `details` is public. */
export function rejectedTokenResponse(reason: Rejection, details: string): TokenResponse {
  return {
    accessToken: null,
    refreshToken: null,
    rejectionReason: reason,
    rejectionDetails: details,
    wasSuccessful: false,
  };
}
