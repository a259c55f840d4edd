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

describe('the partition of the next pass', () => {
  const queueOf = (...partitions: number[]): PartitionQueue => {
    const queue = new PartitionQueue();
    for (const partition of partitions) queue.want(partition);
    return queue;
  };

  it('is the one that has waited longest, each once', () => {
    const partitions = Array.from({ length: 16 }, (_, index) => (index * 5) % 16);
    const queue = queueOf(...partitions, ...partitions);
    expect(partitions.map(() => queue.take())).toEqual(partitions);
    expect(queue.take()).toBeNull();
  });

  it('is none that is under way, which stays wanted', () => {
    const queue = queueOf(1);
    expect(queue.take()).toBe(1);
    queue.want(1);
    queue.want(2);
    expect(queue.take()).toBe(2);
    expect(queue.take()).toBeNull();
    queue.release(1);
    expect(queue.take()).toBe(1);
  });
});
