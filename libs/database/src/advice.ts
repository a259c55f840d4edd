import { CommandError } from '@platform/service-defaults';
import { codeOf, isConnectionError } from './errors';

const ADVICE: Readonly<Record<string, string>> = {
  '28P01': 'the database refuses the user or the password',
  '28000': 'the database refuses the user',
  '3D000': 'there is no such database',
  '42501': 'this database role may not do that: give the owner’s address in MIGRATION_DATABASE_URL',
  '42P01': 'the database has no tables of the service yet: migrate it first',
  '3F000': 'the database has no tables of the service yet: migrate it first',
};

/** What an operator can do about a database that refuses the role or cannot be reached, in one line without any statement or
 *  password; null for any other error. */
export function databaseAdvice(error: unknown): string | null {
  const advice = ADVICE[codeOf(error) ?? ''];
  if (advice !== undefined) return advice;
  return isConnectionError(error) ? `the database cannot be reached: ${messageOf(error)}` : null;
}

/** Runs work of a command line; what `databaseAdvice` knows is thrown as a CommandError that says it. */
export async function withDatabaseAdvice<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const advice = databaseAdvice(error);
    throw advice === null ? error : new CommandError(advice, { cause: error });
  }
}

/** An AggregateError (one error per address that was tried) has no message of its own. */
function messageOf(error: unknown): string {
  const { message, errors } = error as { message?: string; errors?: readonly unknown[] };
  if (message !== undefined && message !== '') return message;
  return errors?.map(messageOf).join(', ') ?? String(error);
}
