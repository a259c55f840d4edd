import { ArgumentsError } from '#platform/command-line.ts';
import type { Mutant } from './mutant.ts';
import { type Scenario, unite } from './scenario.ts';

/** Number of parts. */
export const PARTS = 3;
/** Beyond this, starting a second platform is faster. */
const MAX_ROUNDS = 8;
/** Shorter lines, such as a bracket, occur everywhere and do not count. */
const SHORT_LINE = 10;

/** All mistakes, or those that are named. @throws {ArgumentsError} for a name that there is not */
export function chooseMutants<M extends Pick<Mutant, 'name'>>(
  mutants: readonly M[],
  names: readonly string[],
): M[] {
  const unknown = names.filter((name) => !mutants.some((mutant) => mutant.name === name));
  if (unknown.length > 0) throw new ArgumentsError(`There is no mistake ${unknown.join(', ')}.`);
  return mutants.filter(({ name }) => names.length === 0 || names.includes(name));
}

type Groupable = Pick<Mutant, 'claim' | 'aspect' | 'original' | 'bundle' | 'scenario' | 'masks'>;

/** Puts mistakes together of which one run can show each: they break other promises, or other aspects of one,
 *  in other code. Each joins those whose run needs the fewest rounds more. */
export function groupMutants<M extends Groupable>(mutants: readonly M[]): M[][] {
  const groups: M[][] = [];
  for (const mutant of mutants.toSorted((left, right) => right.scenario.length - left.scenario.length)) {
    const roundsMore = (members: readonly M[]): number =>
      scenarioOf([...members, mutant]).length - scenarioOf(members).length;
    const [group] = groups
      .filter((members) => fits(members, mutant))
      .toSorted((left, right) => roundsMore(left) - roundsMore(right));
    if (group === undefined) groups.push([mutant]);
    else group.push(mutant);
  }
  return groups;
}

/** Every third of the groups. @param part which: numbers that differ by `PARTS` are the same */
export function partOf<T>(groups: readonly T[], part: number): T[] {
  return groups.filter((_, index) => index % PARTS === part % PARTS);
}

/** The rounds that the run of a group has. */
export function scenarioOf(mutants: readonly Pick<Mutant, 'scenario'>[]): Scenario {
  return mutants.map(({ scenario }) => scenario).reduce(unite, []);
}

/**
 * For each mistake the finding that names it and could be that of no other; null: there is none.
 * @param findings of one run against all of them
 */
export function nameFindings(
  mutants: readonly Pick<Mutant, 'caughtBy'>[],
  findings: readonly string[],
): (string | null)[] {
  return mutants.map((mutant) => {
    const others = mutants.filter((other) => other !== mutant);
    const own = findings.find(
      (finding) => mutant.caughtBy.test(finding) && !others.some(({ caughtBy }) => caughtBy.test(finding)),
    );
    return own ?? null;
  });
}

function fits(members: readonly Groupable[], mutant: Groupable): boolean {
  const all = [...members, mutant];
  if (all.some(({ masks }) => masks !== undefined)) return false;
  if (scenarioOf(all).length > MAX_ROUNDS) return false;
  return members.every((member) => !isSamePromise(member, mutant) && !isSameCode(member, mutant));
}

function isSamePromise(left: Groupable, right: Groupable): boolean {
  const isApart = left.aspect !== undefined && right.aspect !== undefined && left.aspect !== right.aspect;
  return left.claim === right.claim && !isApart;
}

/** True when a line of one is in the other: after the first was planted the second would not be found. */
function isSameCode(left: Groupable, right: Groupable): boolean {
  const hasLineOf = (text: string, other: string): boolean =>
    other.split('\n').some((line) => line.trim().length > SHORT_LINE && text.includes(line.trim()));
  return (
    left.bundle === right.bundle &&
    (hasLineOf(left.original, right.original) || hasLineOf(right.original, left.original))
  );
}
