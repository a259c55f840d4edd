/** The result of one comparison of acknowledgements with facts. */
export interface Check {
  readonly name: string;
  /** What the platform had acknowledged, or was bound to do. */
  readonly acknowledged: number;
  /** How many facts were compared with that. */
  readonly audited: number;
  readonly lost: number;
  /** Null: repetition is impossible there, or has no meaning for this check. */
  readonly duplicated: number | null;
  /** Everything that is wrong, in words; also what is lost or duplicated. */
  readonly findings: readonly string[];
}

/** Collects what one comparison finds. */
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

  /** Counts what was done more than once. @param found the findings; nothing may keep them from occurring */
  noneTwice(found: Iterable<string>): void {
    this.#duplicated ??= 0;
    for (const what of found) {
      this.#duplicated += 1;
      this.wrong(`twice: ${what}`);
    }
  }

  wrong(what: string): void {
    this.#findings.push(what);
  }

  /** Each expected key has to occur. @param nameOf what the finding calls it */
  eachOf(
    expected: Iterable<string>,
    found: { has(key: string): boolean },
    nameOf = (key: string): string => key,
  ): void {
    for (const key of expected) if (!found.has(key)) this.lost(nameOf(key));
  }

  /** No key may occur more than once. */
  atMostOnce(counts: ReadonlyMap<string, number>, describe = countedTimes): void {
    const repeated = [...counts].filter(([, count]) => count > 1);
    this.noneTwice(repeated.map(([key, count]) => describe(key, count)));
  }

  /** Nothing may occur but what is expected. @param describe the finding */
  nothingBut(
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

/** A comparison of nothing with nothing shows nothing: that is a finding too. */
export function withFigures(check: Check): Check {
  const { acknowledged, audited, findings } = check;
  if (acknowledged > 0 && audited > 0) return check;
  const finding = `nothing was compared: ${acknowledged} acknowledged, ${audited} audited`;
  return { ...check, findings: [...findings, finding] };
}

const SHOWN = 20;

/** A line for each finding, as reports have it. */
export function findingLines({ name, findings }: Pick<Check, 'name' | 'findings'>): string[] {
  return findings.map((text) => `✘ ${name}: ${text}`);
}

/** The first findings of a check, and how many there are besides. */
export function firstFindings(check: Pick<Check, 'name' | 'findings'>): string[] {
  const lines = findingLines(check);
  const more = lines.length - SHOWN;
  return more > 0 ? [...lines.slice(0, SHOWN), `✘ ${check.name}: and ${more} more`] : lines;
}

function countedTimes(key: string, count: number): string {
  return `${key} (${count} times)`;
}

/** How often each key occurs. */
export function countBy<T>(items: Iterable<T>, keyOf: (item: T) => string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(keyOf(item), (counts.get(keyOf(item)) ?? 0) + 1);
  return counts;
}
