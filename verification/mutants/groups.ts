import { ArgumentsError } from '#platform/command-line.ts';
import type { Mutant } from './mutant.ts';
import { type Rounds, unite } from './rounds.ts';

/** Number of parts into which the groups are divided. */
export const PARTS = 3;
/** Maximum rounds of one run. Beyond it, starting a second platform is faster. */
const MAX_ROUNDS = 8;
/**
 * Lines up to this length, e.g. a bracket, are ignored when code is compared, because they occur everywhere.
 */
const SHORT_LINE = 10;

/** Returns all mutants, or the named ones. @throws {ArgumentsError} for an unknown name */
export function chooseMutants<M extends Pick<Mutant, 'name'>>(
  mutants: readonly M[],
  names: readonly string[],
): M[] {
  const unknown = names.filter((name) => !mutants.some((mutant) => mutant.name === name));
  if (unknown.length > 0) throw new ArgumentsError(`Unknown mistakes: ${unknown.join(', ')}.`);
  return mutants.filter(({ name }) => names.length === 0 || names.includes(name));
}

type Groupable = Pick<Mutant, 'promise' | 'aspect' | 'original' | 'bundle' | 'rounds' | 'masks'>;

/**
 * Groups mutants that can share a copy of the build and one run. The members of a group break different
 * promises, or different aspects of one, in different code. Each mutant joins the group whose run needs the
 * fewest additional rounds.
 */
export function groupMutants<M extends Groupable>(mutants: readonly M[]): M[][] {
  const groups: M[][] = [];
  for (const mutant of mutants.toSorted((left, right) => right.rounds.length - left.rounds.length)) {
    const additionalRounds = (members: readonly M[]): number =>
      roundsOf([...members, mutant]).length - roundsOf(members).length;
    const [group] = groups
      .filter((members) => fits(members, mutant))
      .toSorted((left, right) => additionalRounds(left) - additionalRounds(right));
    if (group === undefined) groups.push([mutant]);
    else group.push(mutant);
  }
  return groups;
}

/** Returns every third group. @param part number of the part, taken modulo `PARTS` */
export function partOf<T>(groups: readonly T[], part: number): T[] {
  return groups.filter((_, index) => index % PARTS === part % PARTS);
}

/** The rounds of a group's run. */
export function roundsOf(mutants: readonly Pick<Mutant, 'rounds'>[]): Rounds {
  return mutants.map(({ rounds }) => rounds).reduce(unite, []);
}

/**
 * Returns for each mutant a finding that matches it and no other mutant of the group. Null: there is none.
 * @param findings of one run with all the mutants
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
  if (roundsOf(all).length > MAX_ROUNDS) return false;
  return members.every((member) => !isSamePromise(member, mutant) && !isSameCode(member, mutant));
}

function isSamePromise(left: Groupable, right: Groupable): boolean {
  const isApart = left.aspect !== undefined && right.aspect !== undefined && left.aspect !== right.aspect;
  return left.promise === right.promise && !isApart;
}

/**
 * True if a line of one mutant's original code occurs in the other's: planting one would change the other's
 * code.
 */
function isSameCode(left: Groupable, right: Groupable): boolean {
  const hasLineOf = (text: string, other: string): boolean =>
    other.split('\n').some((line) => line.trim().length > SHORT_LINE && text.includes(line.trim()));
  return (
    left.bundle === right.bundle &&
    (hasLineOf(left.original, right.original) || hasLineOf(right.original, left.original))
  );
}
