import { z } from 'zod';

/** What a revocation may name: one token, every token of a person, or every token of an internal user. */
const REVOCATION_DOMAINS = ['jti', 'svc-personid', 'internal-legacy'] as const;
export type RevocationDomain = (typeof REVOCATION_DOMAINS)[number];

/** One revocation as GET /auth/revocations lists it. Source: authentication spec, Revocation. */
export const revocation = z.object({
  domain: z.enum(REVOCATION_DOMAINS),
  /** A token's `jti`, or a person or user identifier in canonical decimals. */
  identifier: z.string().min(1).max(1_000),
  /** ISO 8601 date-time with offset. */
  revocationDate: z.iso.datetime({ offset: true }),
});
export type Revocation = z.output<typeof revocation>;

/** Where revocations are read from: the database in auth-service, HTTP everywhere else. */
export interface RevocationSource {
  /**
   * Every revocation with a date strictly after `since`, at once or in pages. An error, or a page that fails, means the
   * whole answer is unusable.
   */
  changesSince(
    since: Date,
    signal?: AbortSignal,
  ): Promise<readonly Revocation[]> | AsyncIterable<readonly Revocation[]>;
}

/** What a revocation is matched against. */
export interface RevocableToken {
  jti: string;
  /** Whole seconds since 1970. */
  iat: number;
  personId?: number | null | undefined;
  userId?: number | null | undefined;
}
