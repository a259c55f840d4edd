/** What one comparison of acknowledgements with the facts came to. */
export interface Check {
  readonly name: string;
  /** What the platform had acknowledged, or was bound to do. */
  readonly acknowledged: number;
  /** How many facts were compared with that. */
  readonly audited: number;
  readonly lost: number;
  readonly duplicated: number;
  /** Everything else that is wrong, in words; lost and duplicated ones are also named here. */
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

/** How often each key occurs. */
export function countBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(keyOf(item), (counts.get(keyOf(item)) ?? 0) + 1);
  return counts;
}
