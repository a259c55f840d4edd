/** Most lanes of one pass. Together they share its round trips to the database, and wait for its slowest publish. */
export const LANES_PER_PASS = 8;

/** Which lanes the relay takes next: those that have waited longest, several at once, none twice at a time. Lanes with a
 *  backlog of their own, and those that held up a pass or made it fail, come alone until that is over: they would hold up others, and in a
 *  backlog replicas share the lanes only if none takes many. */
export class LaneQueue {
  private readonly wanted = new Set<number>();
  private readonly underWay = new Set<number>();
  private readonly alone = new Set<number>();

  /** A lane that is under way stays wanted: that pass may have selected its batch already. */
  want(lane: number): void {
    this.wanted.add(lane);
  }

  /** The lanes of the next pass, now under way; empty when there is nothing to do. */
  take(): number[] {
    const free = [...this.wanted].filter((lane) => !this.underWay.has(lane));
    const [first] = free;
    if (first === undefined) return [];
    const lanes = this.alone.has(first)
      ? [first]
      : free.filter((lane) => !this.alone.has(lane)).slice(0, LANES_PER_PASS);
    for (const lane of lanes) {
      this.wanted.delete(lane);
      this.underWay.add(lane);
    }
    return lanes;
  }

  /** Ends a pass. @param apart those of its lanes that come alone the next time */
  release(lanes: readonly number[], apart: readonly number[]): void {
    for (const lane of lanes) {
      this.underWay.delete(lane);
      if (apart.includes(lane)) this.alone.add(lane);
      else this.alone.delete(lane);
    }
  }
}
