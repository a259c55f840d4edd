import type { FiresEnded, PlantedTrigger } from '#verification/traffic/journal.ts';
import { expectedFires } from '#verification/oracle/fires.ts';
import type { DueInstants } from '#verification/oracle/schedules.ts';
import { type Check, CheckBuilder, countBy } from './check.ts';
import { firstPublished } from './messages.ts';

/** A fire that was published. */
interface PublishedFire {
  readonly facilityId: number;
  readonly scheduledAtMs: number;
  readonly messageId: string;
}

/** A fire as the scheduler has recorded it. */
export interface Fire extends PublishedFire {
  readonly firedAtMs: number;
}

/** What the scheduler has made of the planted triggers. */
export interface Fires {
  readonly stored: readonly Fire[];
  readonly published: readonly PublishedFire[];
}

/**
 * Each planted trigger fired for every instant that its expression, zone and the clock say, once, not before
 * its time, under one message id, in order; nothing else fired.
 * @param toleranceMs how far clocks may differ, a stepped clock included
 */
export function auditFires(
  planted: readonly PlantedTrigger[],
  { ended, due, toleranceMs }: { ended: FiresEnded; due: DueInstants; toleranceMs: number },
  { stored, published }: Fires,
): Check {
  const check = new CheckBuilder('fires: each due (facility, instant) once, in time, and no other');
  const [expected, allowed] = [new Set<string>(), new Set<string>()];
  for (const trigger of planted) {
    const { facilityId } = trigger;
    const pausedAtMs = ended.pausedAtMs + toleranceMs;
    const fires = expectedFires(due.of(trigger), { ...trigger, ...ended, pausedAtMs });
    for (const scheduledAtMs of fires.due) expected.add(keyOf({ facilityId, scheduledAtMs }));
    for (const scheduledAtMs of fires.allowed) allowed.add(keyOf({ facilityId, scheduledAtMs }));
  }
  // The table's key is this one too: only messages can be twice.
  const recorded = new Set(stored.map(keyOf));
  const firsts = firstPublished(published);
  const messages = countBy(firsts, keyOf);
  check.eachOf(expected, recorded, (key) => `fire of ${key}`);
  check.eachOf(expected, messages, (key) => `message of the fire of ${key}`);
  check.atMostOnce(messages, (key, count) => `${key} was published as ${count} messages`);
  const isDue = { has: (key: string): boolean => expected.has(key) || allowed.has(key) };
  check.nothingBut(isDue, recorded, (key) => `${key} fired, and was not due`);
  check.nothingBut(recorded, messages.keys(), (key) => `${key} was published and not recorded`);
  for (const fire of stored)
    if (fire.firedAtMs < fire.scheduledAtMs) check.wrong(`${keyOf(fire)} fired before its time`);
  for (const key of findDisorder(firsts)) check.wrong(`order: ${key} was published after a later one`);
  return check.done(expected.size, stored.length);
}

/** The last fire that each planted facility was bound to have. */
export function lastFires(
  planted: readonly PlantedTrigger[],
  { ended, due }: { ended: FiresEnded; due: DueInstants },
): Map<number, number> {
  return new Map(
    planted.map((trigger) => {
      const fires = expectedFires(due.of(trigger), { ...trigger, ...ended });
      return [trigger.facilityId, fires.due.at(-1) ?? 0];
    }),
  );
}

function findDisorder(published: readonly PublishedFire[]): string[] {
  const newest = new Map<number, number>();
  const disordered: string[] = [];
  for (const fire of published) {
    const newestAtMs = newest.get(fire.facilityId) ?? 0;
    if (newestAtMs > fire.scheduledAtMs) disordered.push(keyOf(fire));
    newest.set(fire.facilityId, Math.max(newestAtMs, fire.scheduledAtMs));
  }
  return disordered;
}

function keyOf({ facilityId, scheduledAtMs }: Pick<PublishedFire, 'facilityId' | 'scheduledAtMs'>): string {
  return `${facilityId} ${new Date(scheduledAtMs).toISOString()}`;
}
