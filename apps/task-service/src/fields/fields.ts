import type { ColumnOptions } from 'typeorm';
import { z } from 'zod';
import { NEXT_PAGE_KEY_DESCRIPTION } from '@platform/service-defaults';
import { TaskError } from '../problems/task-error';

// PostgreSQL text can store neither U+0000 nor lone surrogates. The other control characters are rejected
// because they make logs misleading.

const CONTROL_CHARACTERS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/;
const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * Schema of a text of `min` to `max` UTF-16 units that PostgreSQL can store: no control characters except tab
 * and line ends, no lone surrogates. Not blank if `min` is at least 1.
 */
export function text({ min, max }: { min: number; max: number }): z.ZodType<string, string> {
  return z
    .string()
    .max(max)
    .refine((value) => (min === 0 ? true : value.trim().length >= min), 'must not be blank')
    .refine(
      (value) => !CONTROL_CHARACTERS.test(value) && !LONE_SURROGATE.test(value),
      'has characters that are not text',
    );
}

/** Schema of a facility id in a path. */
export const facilityIdText = z
  .string()
  .regex(/^[1-9]\d{0,15}$/, 'must be a positive integer')
  .transform(Number)
  .refine(Number.isSafeInteger, 'must be a positive integer')
  .meta({
    type: 'integer',
    pattern: undefined,
    minimum: 1,
    description: 'The facility.',
    example: 501,
  });

export const facilityIdQuery = facilityIdText.optional().meta({
  type: 'integer',
  pattern: undefined,
  minimum: 1,
  description: "Only this facility's. Default: all facilities of the caller.",
  example: 501,
});

/** Schema of a UUID in a path. */
export const identifierText = (description: string, example: string) =>
  z
    .guid()
    .transform((text) => text.toLowerCase())
    .meta({ type: 'string', format: 'uuid', pattern: undefined, description, example });

// Response fields.

export const facilityId = z.int().meta({ description: 'The facility.', examples: [501] });
export const timeZone = z
  .string()
  .meta({ description: 'IANA time zone of the cron expression.', examples: ['Europe/Berlin'] });
export const cron = z
  .string()
  .meta({ description: 'Cron expression with five fields.', examples: ['0 9 * * 1'] });
export const instant = (description: string): z.ZodString =>
  z.string().meta({ format: 'date-time', description });
export const identifier = (description: string): z.ZodString =>
  z.string().meta({ format: 'uuid', description });
export const nextPageKey = z.string().nullable().meta({ description: NEXT_PAGE_KEY_DESCRIPTION });

/** Schema of the person or client that issued a command. */
export const actor = z
  .object({
    personId: z.int().nullable().meta({ description: 'Null for internal users.' }),
    name: z.string().nullable(),
    persona: z.int().meta({
      description: 'Persona bits: 1 InternalPartner, 2 Customer, 4 ServiceProvider, 8 Resident, 16 Owner.',
    }),
  })
  .meta({ id: 'Actor', description: 'Who issued the command.' });

/** Returns the response member of a template, which is stored as JSON text. */
export function templateBody(template: string | null): Record<string, unknown> | null {
  return template === null ? null : (JSON.parse(template) as Record<string, unknown>);
}

export const IVY = { personId: null, name: 'Ivy Internal', persona: 1 };

const EARLIEST_MS = Date.UTC(2000, 0, 1);
const LATEST_MS = Date.UTC(2200, 0, 1);

/**
 * Returns the instant if it is between 2000 and 2200. Any other is a mistake, and PostgreSQL, JavaScript and
 * ISO 8601 disagree about instants that are even further away.
 * @throws {TaskError} instant-out-of-range
 */
export function withinLimits(instant: Date): Date {
  if (instant.getTime() < EARLIEST_MS || instant.getTime() > LATEST_MS)
    throw new TaskError('instant-out-of-range');
  return instant;
}

/**
 * Column options of a number that PostgreSQL stores as `bigint`. The driver returns it as text, the
 * transformer as a number.
 */
export const BIGINT = {
  type: 'bigint',
  transformer: {
    from: (text: string | null): number | null => (text === null ? null : Number(text)),
    to: (value: unknown): unknown => value,
  },
} as const satisfies ColumnOptions;

/** Column options of an instant, to the millisecond like JavaScript's dates. */
export const INSTANT = { type: 'timestamptz', precision: 3 } as const satisfies ColumnOptions;
