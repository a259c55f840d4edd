/** The result of one comparison of acknowledgements with facts. */
export interface Check {
  readonly name: string;
  /** What the platform had acknowledged, or was bound to do. */
  readonly acknowledged: number;
  /** How many facts were compared with that. */
  readonly audited: number;
  readonly lost: number;
  readonly duplicated: number;
  /** Everything that is wrong, in words; also what is lost or duplicated. */
  readonly findings: readonly string[];
}

const SHOWN = 20;

/** Collects what one comparison finds. */
export class CheckBuilder {
  readonly #name: string;
  readonly #findings: string[] = [];
  #lost = 0;
  #duplicated = 0;

  constructor(name: string) {
    this.#name = name;
  }

  lost(what: string): void {
    this.#lost += 1;
    this.wrong(`lost: ${what}`);
  }

  duplicated(what: string): void {
    this.#duplicated += 1;
    this.wrong(`twice: ${what}`);
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
    for (const [key, count] of counts) if (count > 1) this.duplicated(describe(key, count));
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
    const more = this.#findings.length - SHOWN;
    return {
      name: this.#name,
      acknowledged,
      audited,
      lost: this.#lost,
      duplicated: this.#duplicated,
      findings: [...this.#findings.slice(0, SHOWN), ...(more > 0 ? [`and ${more} more`] : [])],
    };
  }
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
