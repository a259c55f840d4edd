const COLLECTION = /^\[\d+:(\w+)\].*? ([\d.]+) \([\d.]+\) -> ([\d.]+) \(/gm;

/**
 * KB that a program took from its heaps, by the lines that V8 writes with `--trace-gc`: what each collection
 * found beyond what the one before had left. Buffers outside of the heaps do not count.
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
