import type { ColumnOptions } from 'typeorm';

/** A column with the identifier of a person, a user or a provider: `bigint`, which the driver reads as text. Identifiers fit a number. */
export const IDENTIFIER = {
  type: 'bigint',
  transformer: {
    from: (text: string | null): number | null => (text === null ? null : Number(text)),
    to: (identifier: unknown) => identifier,
  },
} as const satisfies ColumnOptions;
