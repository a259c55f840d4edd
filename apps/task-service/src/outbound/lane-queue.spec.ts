import { LANES_PER_PASS, LaneQueue } from './lane-queue';

const queueOf = (...lanes: number[]): LaneQueue => {
  const queue = new LaneQueue();
  for (const lane of lanes) queue.want(lane);
  return queue;
};

describe('the lanes of the next pass', () => {
  it('are those that have waited longest, up to the limit, each once', () => {
    const lanes = Array.from({ length: 16 }, (_, index) => (index * 5) % 16);
    const queue = queueOf(...lanes, ...lanes);
    expect(queue.take()).toEqual(lanes.slice(0, LANES_PER_PASS));
    expect(queue.take()).toEqual(lanes.slice(LANES_PER_PASS));
    expect(queue.take()).toEqual([]);
  });

  it('leave out what is under way, which stays wanted', () => {
    const queue = queueOf(1);
    expect(queue.take()).toEqual([1]);
    queue.want(1);
    queue.want(2);
    expect(queue.take()).toEqual([2]);
    queue.release([1], []);
    expect(queue.take()).toEqual([1]);
  });

  it('come alone when they were set apart, and in company again after the next pass', () => {
    const queue = queueOf(1, 2, 3);
    queue.release(queue.take(), [1, 3]);
    for (const lane of [1, 2, 3, 4]) queue.want(lane);
    expect(queue.take()).toEqual([1]);
    expect(queue.take()).toEqual([2, 4]);
    expect(queue.take()).toEqual([3]);
    queue.release([1], []);
    queue.release([2, 4], []);
    queue.release([3], []);
    for (const lane of [1, 2, 3, 4]) queue.want(lane);
    expect(queue.take()).toEqual([1, 2, 3, 4]);
  });
});
