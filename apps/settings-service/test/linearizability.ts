/**
 * One completed operation on one setting, with the times at which its caller sent the request and received
 * the response.
 */
export interface Observation {
  kind: 'PUT' | 'DELETE' | 'GET';
  startedAt: number;
  endedAt: number;
  /**
   * For PUT, the value written; for GET and DELETE, the value found, or null if there was none. Every PUT
   * writes a distinct value.
   */
  value: string | null;
}

/** One history entry. Lists of entries are in history order. */
export interface HistoryEntry {
  operation: string;
  value: string;
}

/**
 * Returns why no order of the operations is consistent with the observations; empty if they are linearizable.
 * The history defines the order of the writes. This checks that this order agrees with real time, and that
 * each read fits between the writes.
 */
export function contradictions(
  history: readonly HistoryEntry[],
  observations: readonly Observation[],
): string[] {
  const found: string[] = [];
  const writes = history.map((entry) => {
    const kind = entry.operation === 'delete' ? 'DELETE' : 'PUT';
    return observations.find((each) => each.kind === kind && each.value === entry.value);
  });
  writes.forEach((write, index) => {
    if (write === undefined) found.push(`nobody asked for entry ${String(index)}`);
    const later = writes.slice(0, index).find((other) => write && other && write.endedAt < other.startedAt);
    if (later !== undefined) found.push(`entry ${String(index)} happened before an earlier entry`);
  });
  const reads = observations
    .filter((each) => each.kind === 'GET' || (each.kind === 'DELETE' && each.value === null))
    .sort((a, b) => a.startedAt - b.startedAt);
  const placed: { read: Observation; state: number }[] = [];
  for (const read of reads) {
    const state = earliestState(history, writes, placed, read);
    if (state === null) found.push(`a read of ${String(read.value)} fits nowhere`);
    else placed.push({ read, state });
  }
  return found;
}

/**
 * Returns the first state (number of entries applied) that the read can have seen, given the reads that ended
 * before it began. Null if there is none.
 */
function earliestState(
  history: readonly HistoryEntry[],
  writes: readonly (Observation | undefined)[],
  placed: readonly { read: Observation; state: number }[],
  read: Observation,
): number | null {
  const done = writes.findLastIndex((write) => write !== undefined && write.endedAt < read.startedAt) + 1;
  const seen = placed.filter((each) => each.read.endedAt < read.startedAt).map(({ state }) => state);
  const notYet = writes.findIndex((write) => write !== undefined && write.startedAt > read.endedAt);
  const last = notYet === -1 ? history.length : notYet;
  for (let state = Math.max(done, ...seen); state <= last; state += 1) {
    const entry = history[state - 1];
    const value = entry === undefined || entry.operation === 'delete' ? null : entry.value;
    if (value === read.value) return state;
  }
  return null;
}
