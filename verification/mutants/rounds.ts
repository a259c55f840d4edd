import { type FaultKind, planFaults } from '#verification/scenarios/chaos/plan.ts';
import type { ServiceName } from '#platform/programs.ts';

/** A round of `npm run chaos`. */
interface Round {
  readonly kind: FaultKind;
  /** The service whose replica the fault hits. Omitted: any service. */
  readonly service?: ServiceName;
}

/** The rounds of a run, in any order. */
export type Rounds = readonly Round[];

/** One round without a fault, about 10 s. */
export const CALM: Rounds = calm(1);
/** Rounds without a fault that are long enough to contain the start of a minute. */
export const CALM_MINUTE: Rounds = calm(7);

export function calm(rounds: number): Rounds {
  return Array.from({ length: rounds }, () => ({ kind: 'calm' }));
}

/** One round that plants rows just before and just after the end of their retention. */
export const EXPIRED_ROWS: Rounds = one('expired-rows');

/** One round with a fault. */
export function one(kind: FaultKind): Rounds {
  return [{ kind }];
}

/** One round with a fault that hits a replica of this service. */
export function oneAt(service: ServiceName, kind: FaultKind): Rounds {
  return [{ kind, service }];
}

/** The smallest list that contains the rounds of both lists. */
export function unite(left: Rounds, right: Rounds): Rounds {
  const missing = [...right];
  for (const round of left) {
    const index = missing.findIndex((other) => isSame(round, other));
    if (index >= 0) missing.splice(index, 1);
  }
  return [...left, ...missing];
}

const MAX_SEED = 1_000;

/**
 * Returns the flags of `npm run chaos` for these rounds, with the first seed that hits the named services.
 * @throws {Error} if no seed up to 1,000 does
 */
export function chaosFlags(rounds: Rounds): string[] {
  const kinds = rounds.map(({ kind }) => kind);
  for (let seed = 1; seed <= MAX_SEED; seed += 1) {
    const plan = planFaults(seed, kinds.length, kinds);
    const isHit = ({ kind, service }: Round): boolean =>
      service === undefined || plan.some((fault) => fault.kind === kind && fault.replica.service === service);
    if (rounds.every(isHit))
      return ['--faults', kinds.join(','), '--rounds', String(kinds.length), '--seed', String(seed)];
  }
  throw new Error(`no seed has ${describeRounds(rounds)}`);
}

/** E.g. `2 × calm, database-kill`. @param quote formats the name of a fault */
export function describeRounds(rounds: Rounds, quote = (kind: string): string => kind): string {
  const counts = new Map<FaultKind, number>();
  for (const { kind } of rounds) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return [...counts]
    .map(([kind, count]) => (count === 1 ? quote(kind) : `${count} × ${quote(kind)}`))
    .join(', ');
}

function isSame(left: Round, right: Round): boolean {
  return left.kind === right.kind && left.service === right.service;
}
