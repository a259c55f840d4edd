import type { Random } from '#platform/random.ts';
import type { Caller } from './caller.ts';
import type { Journal } from './journal.ts';

/** What every worker of the load works with. */
export interface LoadContext {
  readonly caller: Caller;
  readonly journal: Journal;
  readonly random: Random;
  /** Tells workers to finish what they have begun. */
  readonly stop: AbortSignal;
  readonly urls: {
    readonly auth: string;
    readonly settings: string;
    readonly task: string;
    readonly customers: string;
  };
  /** Of a user with the persona InternalPartner. */
  readonly adminToken: string;
}

/** The pause of a worker between two of its requests, in ms: the machine has to carry the platform as well. */
export const PAUSE_MS = 25;

/** The claim `jti` of a JWT. */
export function jtiOf(token: string): string {
  const [, payload = ''] = token.split('.');
  return (JSON.parse(Buffer.from(payload, 'base64url').toString()) as { jti: string }).jti;
}
