import { PARTITION_COUNT, partitionOf } from './outbound-event';
import { PartitionQueue } from './relay.service';

describe('outbox partitions', () => {
  it('never changes the partition of a facility', () => {
    // Fixed values: replicas of two releases must agree during a rolling restart.

    expect(partitionOf(501)).toBe(1);
  });

  it('spreads facilities over all partitions about evenly', () => {
    const sizes = new Array<number>(PARTITION_COUNT).fill(0);
    for (let facilityId = 1; facilityId <= 16_000; facilityId += 1) {
      const partition = partitionOf(facilityId);
      sizes[partition] = (sizes[partition] ?? 0) + 1;
    }
    expect(Math.min(...sizes)).toBeGreaterThan(850);
    expect(Math.max(...sizes)).toBeLessThan(1_150);
  });
});

describe('the partitions of the next pass', () => {
  const queueOf = (...partitions: number[]): PartitionQueue => {
    const queue = new PartitionQueue();
    for (const partition of partitions) queue.want(partition);
    return queue;
  };
  const ended = { failed: false };

  it('are all that wait, in order of waiting, without duplicates', () => {
    const partitions = Array.from({ length: 16 }, (_, index) => (index * 5) % 16);
    const queue = queueOf(...partitions, ...partitions);
    expect(queue.take(1)).toEqual(partitions);
    expect(queue.take(1)).toEqual([]);
  });

  it('are only a share of those that wait if further passes are free', () => {
    const queue = queueOf(4, 9, 2);
    expect([queue.take(2), queue.take(1)]).toEqual([[4, 9], [2]]);
  });

  it('exclude one with a running pass, which keeps waiting', () => {
    const queue = queueOf(1);
    expect(queue.take(1)).toEqual([1]);
    queue.want(1);
    queue.want(2);
    expect(queue.take(1)).toEqual([2]);
    expect(queue.take(1)).toEqual([]);
    queue.release([1], ended);
    expect(queue.take(1)).toEqual([1]);
  });

  it('are a single one after its pass failed, until a pass over it succeeds', () => {
    const queue = queueOf(1, 2);
    queue.release(queue.take(1), { failed: true });
    for (const partition of [3, 1, 2, 4]) queue.want(partition);
    expect([queue.take(1), queue.take(1), queue.take(1)]).toEqual([[3, 4], [1], [2]]);
    queue.release([1, 2, 3, 4], ended);
    for (const partition of [1, 2, 3]) queue.want(partition);
    expect(queue.take(1)).toEqual([1, 2, 3]);
  });
});
