/** Returns the nodes on a shortest path in a graph, both ends included; null without a path. */
export function findPath(
  from: string,
  to: string,
  successorsOf: (node: string) => Iterable<string>,
): string[] | null {
  const cameFrom = new Map<string, string | null>([[from, null]]);
  // Breadth-first: the loop also visits the nodes that its body adds.
  for (const node of cameFrom.keys()) {
    if (node === to) {
      const path: string[] = [];
      for (let each: string | null = to; each !== null; each = cameFrom.get(each) ?? null) path.unshift(each);
      return path;
    }
    for (const next of successorsOf(node)) if (!cameFrom.has(next)) cameFrom.set(next, node);
  }
  return null;
}
