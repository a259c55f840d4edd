import type { Batch } from './held-events';

/** Position in a partition whose facilities take turns. */
export interface FacilityTurn {
  readonly partition: number;
  /** The next turn goes to the first facility with a higher id. */
  readonly afterFacility: number;
}

/** Sorts before every facility id. */
const BEFORE_ALL = 0;

/**
 * Tracks partitions with more waiting events than one pass reads. The oldest events may all belong to one
 * facility, so passes over such a partition go from facility to facility and read the oldest events of each,
 * until nothing waits there.
 */
export class FacilityTurns {
  private readonly after = new Map<number, number>();

  /** Returns the positions of those partitions in which facilities take turns. */
  of(partitions: readonly number[]): FacilityTurn[] {
    return partitions.flatMap((partition) => {
      const afterFacility = this.after.get(partition);
      return afterFacility === undefined ? [] : [{ partition, afterFacility }];
    });
  }

  /**
   * Records what a pass read. Returns whether more events may wait.
   * @param turn null for a pass that read the oldest events
   * @param limit maximum events of such a pass
   */
  note(
    partition: number,
    { read, lastFacility }: Pick<Batch, 'read' | 'lastFacility'>,
    { turn, limit }: { turn: FacilityTurn | null; limit: number },
  ): boolean {
    if (turn === null) {
      const isFull = read === limit;
      if (isFull && !this.after.has(partition)) this.after.set(partition, BEFORE_ALL);
      return isFull;
    }
    if (lastFacility !== null) this.after.set(partition, lastFacility);
    else if (turn.afterFacility !== BEFORE_ALL) this.after.set(partition, BEFORE_ALL);
    else this.after.delete(partition);
    return this.after.has(partition);
  }
}
