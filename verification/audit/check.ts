/** The result of comparing acknowledgements with facts. */
export interface Check {
  readonly name: string;
  /** Number of operations that the platform acknowledged, or was otherwise bound to do. */
  readonly acknowledged: number;
  /** Number of facts that were compared with them. */
  readonly audited: number;
  readonly lost: number;
  /** Null: duplicates are impossible, e.g. because of a unique key, or have no meaning for this check. */
  readonly duplicated: number | null;
  /** A sentence for each finding, including those counted as lost or duplicated. */
  readonly findings: readonly string[];
}

/** Collects the findings of one comparison. */
export class CheckBuilder {
  readonly #name: string;
  readonly #findings: string[] = [];
  #lost = 0;
  #duplicated: number | null = null;

  constructor(name: string) {
    this.#name = name;
  }

  lost(what: string): void {
    this.#lost += 1;
    this.wrong(`lost: ${what}`);
  }

  /** Adds duplicates as findings. Call it only if duplicates are possible: it makes the count non-null. */
  addDuplicates(found: Iterable<string>): void {
    this.#duplicated ??= 0;
    for (const what of found) {
      this.#duplicated += 1;
      this.wrong(`twice: ${what}`);
    }
  }

  wrong(what: string): void {
    this.#findings.push(what);
  }

  /** Adds a finding for each expected key that was not found. @param nameOf text of the key in the finding */
  expectEach(
    expected: Iterable<string>,
    found: { has(key: string): boolean },
    nameOf = (key: string): string => key,
  ): void {
    for (const key of expected) if (!found.has(key)) this.lost(nameOf(key));
  }

  /** Adds a finding for each key that occurs more than once. */
  expectAtMostOnce(counts: ReadonlyMap<string, number>, describe = countedTimes): void {
    const repeated = [...counts].filter(([, count]) => count > 1);
    this.addDuplicates(repeated.map(([key, count]) => describe(key, count)));
  }

  /** Adds a finding for each key that was not expected. @param describe text of the finding */
  expectOnly(
    expected: { has(key: string): boolean },
    found: Iterable<string>,
    describe: (key: string) => string,
  ): void {
    for (const key of found) if (!expected.has(key)) this.wrong(describe(key));
  }

  done(acknowledged: number, audited: number): Check {
    return {
      name: this.#name,
      acknowledged,
      audited,
      lost: this.#lost,
      duplicated: this.#duplicated,
      findings: this.#findings,
    };
  }
}

/** Adds a finding to a check that compared nothing: an empty comparison proves nothing. */
export function flagEmptyComparison(check: Check): Check {
  const { acknowledged, audited, findings } = check;
  if (acknowledged > 0 && audited > 0) return check;
  const finding = `nothing was compared: ${acknowledged} acknowledged, ${audited} audited`;
  return { ...check, findings: [...findings, finding] };
}

const SHOWN = 20;

/** One report line per finding. */
export function findingLines({ name, findings }: Pick<Check, 'name' | 'findings'>): string[] {
  return findings.map((text) => `✘ ${name}: ${text}`);
}

/** The first 20 findings of a check as report lines, then a line with the number of the others. */
export function firstFindings(check: Pick<Check, 'name' | 'findings'>): string[] {
  const lines = findingLines(check);
  const more = lines.length - SHOWN;
  return more > 0 ? [...lines.slice(0, SHOWN), `✘ ${check.name}: and ${more} more`] : lines;
}

function countedTimes(key: string, count: number): string {
  return `${key} (${count} times)`;
}

/** Counts the occurrences of each key. */
export function countBy<T>(items: Iterable<T>, keyOf: (item: T) => string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(keyOf(item), (counts.get(keyOf(item)) ?? 0) + 1);
  return counts;
}
