const COLLECTION = /^\[\d+:(\w+)\].*? ([\d.]+) \([\d.]+\) -> ([\d.]+) \(/gm;

/**
 * Computes the KB that a program allocated in its heaps from V8's `--trace-gc` lines: the growth from the end
 * of each collection to the start of the next. Buffers outside the heaps do not count.
 */
export function allocatedKilobytes(log: string): number {
  const left = new Map<string, number>();
  let megabytes = 0;
  for (const [, heap = '', before, after] of log.matchAll(COLLECTION)) {
    megabytes += Math.max(0, Number(before) - (left.get(heap) ?? Number(before)));
    left.set(heap, Number(after));
  }
  return megabytes * 1_024;
}
