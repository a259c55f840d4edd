import type { Batch } from './held-events';

/** A partition whose facilities take turns. */
export interface FacilityTurn {
  readonly partition: number;
  /** The next turn is that of the first facility with a higher number. */
  readonly afterFacility: number;
}

/** Before every facility. */
const BEFORE_ALL = 0;

/**
 * Partitions in which more waits than a pass reads. The oldest events may all be those of one facility: until
 * nothing waits there, passes go from facility to facility instead, and read of each its oldest events.
 */
export class FacilityTurns {
  private readonly after = new Map<number, number>();

  /** Those of the partitions in which facilities take turns. */
  of(partitions: readonly number[]): FacilityTurn[] {
    return partitions.flatMap((partition) => {
      const afterFacility = this.after.get(partition);
      return afterFacility === undefined ? [] : [{ partition, afterFacility }];
    });
  }

  /**
   * Takes note of what a pass read; gives whether there may be more.
   * @param turn null for a pass that read the oldest events
   * @param limit most events that such a pass reads
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
