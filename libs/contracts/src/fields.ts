import { z } from 'zod';

/** A facility's or business unit's number: an integer that survives a double. */
export const integerId = z.int();

/** Any 128-bit identifier in the 8-4-4-4-12 form. Not `z.uuid()`: the sequential identifiers of .NET clients carry no RFC 9562 version. */
export const identifier = z.guid();

/** An ISO 8601 instant with `Z` or an offset; a local time without one is refused, because it names no instant. */
export const instant = z.iso.datetime({ offset: true });

/** IANA time zone name. Whether the zone exists is the receiver's decision, so that the tz database may grow. */
export const timeZone = z.string().min(1).max(100);

/** A cron expression; only the receiver judges its five fields, so that it can answer with a reason. */
export const cron = z.string().min(1).max(200);

/** Who did something: internal users have no person number, and `persona` is the sum of the persona bits. */
export const actor = z.object({
  personId: z.int().nullable(),
  name: z.string().nullable(),
  persona: z.int(),
});

/** Who did something. Source: docs/spec-gaps.md. */
export type Actor = z.output<typeof actor>;
