import type { ColumnOptions } from 'typeorm';

/** Column options of an identifier that PostgreSQL stores as `bigint`: the driver gives it as text, the code has it as a number. */
export const BIGINT = {
  type: 'bigint',
  transformer: {
    from: (text: string | null): number | null => (text === null ? null : Number(text)),
    to: (value: unknown): unknown => value,
  },
} as const satisfies ColumnOptions;

/** Column options of an instant: milliseconds, as JavaScript's dates have them. */
export const INSTANT = { type: 'timestamptz', precision: 3 } as const satisfies ColumnOptions;
