import { setTimeout as delay } from 'node:timers/promises';
import { DEMO_BACKEND } from '#platform/callers.ts';
import type { ServiceName } from '#platform/programs.ts';
import type { Random } from '#platform/random.ts';
import type { Caller } from './caller.ts';
import type { BusinessUnitChange, Journal, ScheduleKind } from './journal.ts';

/** A backend that signs in one of its users without a password. */
export interface Application {
  readonly applicationKey: string;
  readonly sharedSecret: string;
  /** A user with the persona InternalPartner. */
  readonly userName: string;
}

/** One of the development identities. */
export const DEMO_APPLICATION: Application = { ...DEMO_BACKEND, userName: 'ivy.internal' };

/** The shared context of all operations and workers of a load. */
export interface LoadContext {
  readonly caller: Caller;
  readonly journal: Journal;
  readonly random: Random;
  /** The recurrences from which new schedules pick one. */
  readonly kinds: readonly ScheduleKind[];
  /** Aborts when workers must stop after their current step. */
  readonly stop: AbortSignal;
  readonly urls: Readonly<Record<ServiceName | 'customers', string>>;
  readonly application: Application;
  /** Holds the access token of the application's user. A worker may replace it with a newer one. */
  readonly admin: { token: string };
  /** Publishes a change in place of the customers service. Resolves to false if that failed. */
  readonly publish?: (change: BusinessUnitChange) => Promise<boolean>;
}

/** Repeats `step` until the load ends. @param step receives the number of its repetition, from 0 */
export async function repeatUntilStopped(
  { stop }: LoadContext,
  step: (count: number) => Promise<unknown>,
  pauseMs: number,
): Promise<void> {
  for (let count = 0; !stop.aborted; count += 1) {
    await step(count);
    await delay(pauseMs);
  }
}
