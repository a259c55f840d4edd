import type { FiresEnded, PlantedTrigger } from '#verification/traffic/journal.ts';
import { expectedFires } from '#verification/oracle/fires.ts';
import type { DueInstants } from '#verification/oracle/schedules.ts';
import { type Check, CheckBuilder, countBy } from './check.ts';
import { firstPublished } from './messages.ts';

/** A published fire. */
interface PublishedFire {
  readonly facilityId: number;
  readonly scheduledAtMs: number;
  readonly messageId: string;
}

/** A fire in the scheduler's table. */
export interface Fire extends PublishedFire {
  readonly firedAtMs: number;
}

/** Fires of the planted triggers. */
export interface Fires {
  readonly stored: readonly Fire[];
  readonly published: readonly PublishedFire[];
}

/**
 * Checks that each planted trigger fired for every due instant of its expression and zone: once, not early,
 * under one message id and in order. Nothing else may have fired.
 * @param toleranceMs maximum difference between clocks, including a clock step
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
  // The primary key of task.fires is also (facility, instant), so only messages can be duplicated.
  const recorded = new Set(stored.map(keyOf));
  const firsts = firstPublished(published);
  const messages = countBy(firsts, keyOf);
  check.expectEach(expected, recorded, (key) => `fire of ${key}`);
  check.expectEach(expected, messages, (key) => `message of the fire of ${key}`);
  check.expectAtMostOnce(messages, (key, count) => `${key} was published as ${count} messages`);
  const isDue = { has: (key: string): boolean => expected.has(key) || allowed.has(key) };
  check.expectOnly(isDue, recorded, (key) => `${key} fired but was not due`);
  check.expectOnly(recorded, messages.keys(), (key) => `${key} was published but not recorded`);
  for (const fire of stored)
    if (fire.firedAtMs < fire.scheduledAtMs) check.wrong(`${keyOf(fire)} fired before its time`);
  for (const key of findDisorder(firsts)) check.wrong(`order: ${key} was published after a later one`);
  return check.done(expected.size, stored.length);
}

/** The last expected fire of each planted facility, in ms since 1970. */
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
