import { type FaultKind, planFaults } from '#verification/scenarios/chaos/plan.ts';
import type { ServiceName } from '#platform/programs.ts';

/** A round of `npm run chaos`. */
interface Round {
  readonly kind: FaultKind;
  /** Its fault hits a replica of this service; left out: of any. */
  readonly service?: ServiceName;
}

/** The rounds of a run, in any order. */
export type Scenario = readonly Round[];

/** Ten seconds without a fault. */
export const CALM: Scenario = calm(1);
/** A minute begins in it, without a fault. */
export const CALM_MINUTE: Scenario = calm(7);

export function calm(rounds: number): Scenario {
  return Array.from({ length: rounds }, () => ({ kind: 'calm' }));
}

/** Rows are planted on either side of their time. */
export const EXPIRED_ROWS: Scenario = one('expired-rows');

/** One round of a fault. */
export function one(kind: FaultKind): Scenario {
  return [{ kind }];
}

/** One round of a fault that hits a replica of this service. */
export function oneAt(service: ServiceName, kind: FaultKind): Scenario {
  return [{ kind, service }];
}

/** The fewest rounds that have those of both. */
export function unite(left: Scenario, right: Scenario): Scenario {
  const missing = [...right];
  for (const round of left) {
    const index = missing.findIndex((other) => isSame(round, other));
    if (index >= 0) missing.splice(index, 1);
  }
  return [...left, ...missing];
}

const MAX_SEED = 1_000;

/** The flags of `npm run chaos`. The seed is the first that hits the services that are named. */
export function chaosFlags(scenario: Scenario): string[] {
  const kinds = scenario.map(({ kind }) => kind);
  for (let seed = 1; seed <= MAX_SEED; seed += 1) {
    const plan = planFaults(seed, kinds.length, kinds);
    const isHit = ({ kind, service }: Round): boolean =>
      service === undefined || plan.some((fault) => fault.kind === kind && fault.replica.service === service);
    if (scenario.every(isHit))
      return ['--faults', kinds.join(','), '--rounds', String(kinds.length), '--seed', String(seed)];
  }
  throw new Error(`no seed has ${describeScenario(scenario)}`);
}

/** E.g. `2 × calm, database-kill`. @param quote how a fault's name is written */
export function describeScenario(scenario: Scenario, quote = (kind: string): string => kind): string {
  const counts = new Map<FaultKind, number>();
  for (const { kind } of scenario) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return [...counts]
    .map(([kind, count]) => (count === 1 ? quote(kind) : `${count} × ${quote(kind)}`))
    .join(', ');
}

function isSame(left: Round, right: Round): boolean {
  return left.kind === right.kind && left.service === right.service;
}
