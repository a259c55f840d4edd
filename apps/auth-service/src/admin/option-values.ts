import { ALL_PERSONAS, Persona, combinePersonas } from '@platform/personas';
import type { PersonaName, Personas } from '@platform/personas';
import { TOKEN_FLOWS } from '../token/token-response';
import { parseMinDate } from '../revocations/revocation';
import type { CommandInput } from './command';
import { UsageError } from './command';

const UNIT_SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const;
const MAX_SECONDS = 366 * UNIT_SECONDS.d;

/** The text of an option, or undefined when it was not given. */
export function optionText({ options }: CommandInput, name: string): string | undefined {
  const value = options[name];
  return typeof value === 'string' ? value : undefined;
}

/** True when a flag was given. */
export function hasFlag({ options }: CommandInput, name: string): boolean {
  return options[name] === true;
}

/** Seconds in `90s`, `30m`, `24h`, `7d`. At most 366 days. @throws {UsageError} */
export function parseDuration(text: string): number {
  const [, amount, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  const seconds = Number(amount) * UNIT_SECONDS[unit as keyof typeof UNIT_SECONDS];
  if (amount !== undefined && seconds <= MAX_SECONDS) return seconds;
  throw new UsageError(`"${text}" is no duration of at most 366 days: write it like 90s, 30m, 24h or 7d`);
}

/** Persona bits in `Customer,Owner`, or `all`. Letter case does not matter. @throws {UsageError} */
export function parsePersonas(text: string): Personas {
  if (text.toLowerCase() === 'all') return ALL_PERSONAS;
  const names = (Object.keys(Persona) as PersonaName[]).filter((name) => name !== 'None');
  const bits = text.split(',').map((word) => {
    const name = names.find((each) => each.toLowerCase() === word.trim().toLowerCase());
    if (name !== undefined) return Persona[name];
    throw new UsageError(`there is no persona "${word.trim()}": choose of ${names.join(', ')}, or all`);
  });
  return combinePersonas(...bits);
}

/** Flows in `trust,bearer`, or `all`. @throws {UsageError} */
export function parseFlows(text: string): string[] {
  if (text.toLowerCase() === 'all') return [...TOKEN_FLOWS];
  const flows = text.split(',').map((word) => word.trim().toLowerCase());
  const unknown = flows.find((flow) => !TOKEN_FLOWS.some((known) => known === flow));
  if (unknown === undefined) return [...new Set(flows)];
  throw new UsageError(`there is no flow "${unknown}": choose of ${TOKEN_FLOWS.join(', ')}, or all`);
}

/** A whole number from 1 to `max`. @throws {UsageError} */
export function parseCount(name: string, text: string, max: number): number {
  const count = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (count >= 1 && count <= max) return count;
  throw new UsageError(`${name} must be a whole number from 1 to ${max}, not "${text}"`);
}

/** A date or a date-time, in UTC unless it has an offset. @throws {UsageError} */
export function parseInstant(text: string): Date {
  const instant = parseMinDate(text);
  if (instant !== null) return instant;
  throw new UsageError(`"${text}" is no date: write it like 2026-01-31 or 2026-01-31T12:00:00Z`);
}
