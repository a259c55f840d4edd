import { setTimeout as delay } from 'node:timers/promises';
import { DEMO_BACKEND } from '#platform/callers.ts';
import type { ServiceName } from '#platform/programs.ts';
import type { Random } from '#platform/random.ts';
import type { Caller } from './caller.ts';
import type { BusinessUnitChange, Journal, ScheduleKind } from './journal.ts';

/** Who signs in without a password: a backend for one of its users. */
export interface Application {
  readonly applicationKey: string;
  readonly sharedSecret: string;
  /** With the persona InternalPartner. */
  readonly userName: string;
}

/** Of the development identities. */
export const DEMO_APPLICATION: Application = { ...DEMO_BACKEND, userName: 'ivy.internal' };

/** What every operation and every worker of a load works with. */
export interface LoadContext {
  readonly caller: Caller;
  readonly journal: Journal;
  readonly random: Random;
  /** What schedules are created with. */
  readonly kinds: readonly ScheduleKind[];
  /** Tells workers to finish what they have begun. */
  readonly stop: AbortSignal;
  readonly urls: Readonly<Record<ServiceName | 'customers', string>>;
  readonly application: Application;
  /** Holds the access token of the application's user; it may be replaced by a younger one. */
  readonly admin: { token: string };
  /** Publishes a change in its publisher's place; false: it did not get through. */
  readonly publish?: (change: BusinessUnitChange) => Promise<boolean>;
}

/** Repeats `step` until the load ends. @param step gets its number, from 0 */
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
