/** The caller and application that a waiting request counts against. */
export interface Holder {
  readonly caller: string;
  readonly application: string;
}

/** The share of one caller, as a fraction of all places. Callers above their share are displaced first. */
const CALLER_PART = 1 / 16;
/** The minimum share of one caller, in places. */
const CALLER_MIN = 16;

/**
 * Shares at most `limit` places fairly among waiting requests. While places are free, any caller may take any
 * number. When all are taken, a newcomer displaces the oldest request of
 *
 * 1. the caller with the most places, if it has more than a sixteenth of all and more than the newcomer would
 *    have, whatever its applications;
 * 2. else the busiest caller of the application with the most places, if that application has more than the
 *    newcomer's would have, and the newcomer itself has less than a sixteenth;
 * 3. else the caller with the most places in the newcomer's own application, if it has more than the newcomer
 *    would have.
 *
 * So neither one caller nor one application can keep others out, and a lone caller may still use every place.
 */
export class WatcherShares<Watcher extends Holder> implements Iterable<Watcher> {
  private readonly all = new Set<Watcher>();
  /** By caller. A Set iterates in insertion order, so its first element is the oldest. */
  private readonly callers = new Map<string, Set<Watcher>>();
  /** By application, then by caller. */
  private readonly applications = new Map<string, Map<string, Set<Watcher>>>();
  private readonly applicationSizes = new Map<string, number>();
  private readonly callerShare: number;

  constructor(private readonly limit: number) {
    this.callerShare = Math.max(CALLER_MIN, Math.floor(limit * CALLER_PART));
  }

  get size(): number {
    return this.all.size;
  }

  [Symbol.iterator](): Iterator<Watcher> {
    return this.all.values();
  }

  /**
   * Gives the watcher a place if possible.
   * @returns also the watcher that lost its place to it, if any
   */
  add(watcher: Watcher): { isPlaced: boolean; displaced: Watcher | null } {
    if (this.all.size < this.limit) {
      this.insert(watcher);
      return { isPlaced: true, displaced: null };
    }
    const displaced = this.displacedBy(watcher);
    if (displaced === undefined) return { isPlaced: false, displaced: null };
    this.delete(displaced);
    this.insert(watcher);
    return { isPlaced: true, displaced };
  }

  delete(watcher: Watcher): void {
    if (!this.all.delete(watcher)) return;
    const { application, caller } = watcher;
    const callers = this.applications.get(application)!;
    for (const byCaller of [callers, this.callers]) {
      const own = byCaller.get(caller)!;
      own.delete(watcher);
      if (own.size === 0) byCaller.delete(caller);
    }
    if (callers.size === 0) this.applications.delete(application);
    const size = this.applicationSizes.get(application)! - 1;
    if (size === 0) this.applicationSizes.delete(application);
    else this.applicationSizes.set(application, size);
  }

  private insert(watcher: Watcher): void {
    const { application, caller } = watcher;
    let callers = this.applications.get(application);
    if (callers === undefined)
      this.applications.set(application, (callers = new Map<string, Set<Watcher>>()));
    for (const byCaller of [callers, this.callers]) {
      let own = byCaller.get(caller);
      if (own === undefined) byCaller.set(caller, (own = new Set<Watcher>()));
      own.add(watcher);
    }
    this.all.add(watcher);
    this.applicationSizes.set(application, (this.applicationSizes.get(application) ?? 0) + 1);
  }

  /** Returns the watcher that must give up its place to the newcomer; undefined if there is none. */
  private displacedBy({ application, caller }: Holder): Watcher | undefined {
    const ownPlaces = this.callers.get(caller)?.size ?? 0;
    const busiest = largestOf(this.callers, (own) => own.size)?.[1];
    if (busiest !== undefined && busiest.size > Math.max(this.callerShare, ownPlaces + 1))
      return oldestOf(busiest);

    const largest = largestOf(this.applicationSizes, (size) => size);
    const ownSize = this.applicationSizes.get(application) ?? 0;
    if (largest !== undefined && largest[1] > ownSize + 1 && ownPlaces < this.callerShare)
      return this.oldestOfBusiest(largest[0]);

    const rivals = this.applications.get(application);
    const rival = rivals && largestOf(rivals, (own) => own.size)?.[1];
    const ownRivals = rivals?.get(caller)?.size ?? 0;
    return rival !== undefined && rival.size > ownRivals + 1 ? oldestOf(rival) : undefined;
  }

  private oldestOfBusiest(application: string): Watcher | undefined {
    const busiest = largestOf(this.applications.get(application)!, (own) => own.size)?.[1];
    return busiest && oldestOf(busiest);
  }
}

function oldestOf<Watcher>(watchers: ReadonlySet<Watcher>): Watcher | undefined {
  return watchers.values().next().value;
}

function largestOf<Value>(
  entries: ReadonlyMap<string, Value>,
  sizeOf: (value: Value) => number,
): [string, Value] | undefined {
  let largest: [string, Value] | undefined;
  for (const entry of entries)
    if (largest === undefined || sizeOf(entry[1]) > sizeOf(largest[1])) largest = entry;
  return largest;
}
