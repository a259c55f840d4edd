import { z } from 'zod';

const MESSAGE = 'must be an instant like 2026-03-02T09:15:00Z';
const isoInstant = z.iso.datetime({ offset: true }).regex(/^(19|2\d)/);

/**
 * Parses an instant from 1900 to 2999 in ISO 8601 with an offset, truncated to milliseconds, the precision of
 * responses. Also accepts a space in place of `+`, because an unescaped `+` in a query decodes to a space.
 */
export const instant = z.string().transform((text, context): Date => {
  const parsed = isoInstant.safeParse(text.replace(/ (\d{2}:\d{2})$/, '+$1'));
  const at = new Date(parsed.data ?? '');
  if (!Number.isNaN(at.getTime())) return at;
  context.addIssue({ code: 'custom', message: MESSAGE });
  return z.NEVER;
});
