/** Whose request it is that waits. */
export interface Holder {
  readonly caller: string;
  readonly application: string;
}

/**
 * Those who wait, at most `limit`, shared out fairly. While there is room, anybody may have any number of places. When there is none, a
 * newcomer takes a place of the application that has most, if its own has fewer, or else of the caller of its own application that has
 * most. So nobody can keep others out, and a lone caller may still use everything.
 */
export class WatcherShares<Watcher extends Holder> implements Iterable<Watcher> {
  private readonly all = new Set<Watcher>();
  /** By application, then by caller. Sets keep the order in which they came. */
  private readonly applications = new Map<string, Map<string, Set<Watcher>>>();
  private readonly applicationSizes = new Map<string, number>();

  constructor(private readonly limit: number) {}

  get size(): number {
    return this.all.size;
  }

  [Symbol.iterator](): Iterator<Watcher> {
    return this.all.values();
  }

  /** Gives the watcher a place. @returns who has lost theirs to it, null if nobody; undefined when there is no place for the watcher */
  add(watcher: Watcher): Watcher | null | undefined {
    if (this.all.size < this.limit) {
      this.insert(watcher);
      return null;
    }
    const displaced = this.displacedBy(watcher);
    if (displaced === undefined) return undefined;
    this.delete(displaced);
    this.insert(watcher);
    return displaced;
  }

  delete(watcher: Watcher): void {
    if (!this.all.delete(watcher)) return;
    const { application, caller } = watcher;
    const callers = this.applications.get(application)!;
    const own = callers.get(caller)!;
    own.delete(watcher);
    if (own.size === 0) callers.delete(caller);
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
    let own = callers.get(caller);
    if (own === undefined) callers.set(caller, (own = new Set<Watcher>()));
    own.add(watcher);
    this.all.add(watcher);
    this.applicationSizes.set(application, (this.applicationSizes.get(application) ?? 0) + 1);
  }

  /** The oldest watcher of whoever has more than the newcomer would have then. */
  private displacedBy({ application, caller }: Holder): Watcher | undefined {
    const largest = largestOf(this.applicationSizes, (size) => size);
    const ownSize = this.applicationSizes.get(application) ?? 0;
    const isOther = largest !== undefined && largest[1] > ownSize + 1;
    const callers = this.applications.get(isOther ? largest[0] : application);
    const most = callers && largestOf(callers, (own) => own.size);
    if (most === undefined) return undefined;
    const ownCount = isOther ? 0 : (callers?.get(caller)?.size ?? 0);
    if (!isOther && most[1].size <= ownCount + 1) return undefined;
    return most[1].values().next().value;
  }
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
