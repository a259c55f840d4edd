import { ALL_PERSONAS, hasPersona, isPersonas } from '@platform/personas';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { REASONS, TokenRejectionReason } from '../rejections/token-rejection';
import type { Rejection } from '../rejections/token-rejection';

/**
 * Text without control characters and lone surrogates. They would make signed text ambiguous, and PostgreSQL
 * cannot store them.
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

/** The secret of the calling application, in flows that public clients may use without one. */
export const optionalSharedSecret = z.string().min(1).max(1_024).nullish().meta({
  description:
    'The secret of the calling application. Required for a confidential application, optional for others. Never logged.',
});

const optionalInteger = z.int().nullish();

/** The user that a trust request names; the same fields in both trust flows. */
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
      accessToken: jwt('JWT, lives for 24 hours; null if rejected.'),
      refreshToken: jwt('JWT, lives for 365 days; null if rejected, or if no refresh token is issued.'),
      rejectionReason: z.literal(REASONS).meta({
        id: 'TokenRejectionReason',
        description: REASONS.map((each) => `${String(each)} ${TokenRejectionReason[each]}`).join(', '),
      }),
      rejectionDetails: z
        .string()
        .nullable()
        .meta({ description: 'A human-readable reason; do not parse it.' }),
      wasSuccessful: z.boolean().meta({ description: 'True if and only if `rejectionReason` is 0.' }),
    })
    // Without an id, @nestjs/swagger would document "string or null" as an array.
    .meta({ id: 'TokenResponse', description: 'The response of every token endpoint.' }),
) {}

export type TokenResponse = z.output<typeof TokenResponseDto.schema>;

/** Returns the response with tokens. Only TokenIssuer, and the API document's examples, may call it. */
export function successfulTokenResponse(accessToken: string, refreshToken: string | null): TokenResponse {
  return {
    accessToken,
    refreshToken,
    rejectionReason: TokenRejectionReason.Successful,
    rejectionDetails: null,
    wasSuccessful: true,
  };
}

/** Returns the response of a rejection. `details` is public. */
export function rejectedTokenResponse(reason: Rejection, details: string): TokenResponse {
  return {
    accessToken: null,
    refreshToken: null,
    rejectionReason: reason,
    rejectionDetails: details,
    wasSuccessful: false,
  };
}
