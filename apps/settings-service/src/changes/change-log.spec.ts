import fc from 'fast-check';
import { SignedCursor, pageKeyQuery } from '@platform/service-defaults';
import { ChangeLog, RETAINED_CHANGES, MAX_OPEN, pageAfter } from './change-log';
import type { Change, ChangePage, PollResult, Position } from './change-log';

const change = (id: number, settingName = 'a'): Change => ({
  id,
  subsystemKey: 's',
  subsystemName: 'S',
  settingName,
  operation: 'write',
  revision: String(id),
  occurredAt: new Date(0),
});
const idsOf = (page: ChangePage | null): number[] | undefined => page?.changes.map(({ id }) => id);

interface Transaction {
  readonly xid: number;
  readonly drawn: Change[];
}

/**
 * Models the history as the feed sees it in PostgreSQL: identifiers are drawn in order, under the locks of
 * settings, and committed in any order.
 */
class HistoryModel {
  readonly committed: Change[] = [];
  private readonly open: Transaction[] = [];
  private lastId = 0;
  private nextXid = 2;

  /**
   * @param hasOldTransaction whether another database of the cluster has a transaction that never ends and
   *   never writes here
   */
  constructor(private readonly hasOldTransaction: boolean) {}

  write(settingName: string, transaction: number): void {
    if (this.open.some((each) => each.drawn.some((drawn) => drawn.settingName === settingName))) return;
    const joined = this.open[transaction];
    if (joined === undefined)
      this.open.push({ xid: this.nextXid++, drawn: [change(++this.lastId, settingName)] });
    else joined.drawn.push(change(++this.lastId, settingName));
  }

  end(transaction: number, commits: boolean): void {
    const [ended] = this.open.splice(transaction, 1);
    if (commits) this.committed.push(...(ended?.drawn ?? []));
  }

  get openTransactions(): number {
    return this.open.length;
  }

  seenFrom({ upTo, open }: Position, includesWriters: boolean, limit = Infinity): PollResult {
    const sorted = this.committed.toSorted((left, right) => left.id - right.id);
    const after = sorted.filter(({ id }) => id > upTo).slice(0, limit);
    const writersFrom = Math.min(this.nextXid, ...this.open.map(({ xid }) => xid));
    return {
      found: [...sorted.filter(({ id }) => open.includes(id)), ...after],
      xmin: this.hasOldTransaction ? 1 : writersFrom,
      nextXid: this.nextXid,
      writersFrom: includesWriters ? writersFrom : null,
    };
  }
}

describe('ChangeLog', () => {
  it('delivers a change that was committed after one with a higher identifier', () => {
    const log = new ChangeLog(0, []);
    log.add({ found: [change(2)], xmin: 5, nextXid: 7, writersFrom: null });
    const first = log.after({ upTo: 0, open: [] }, 10);
    expect(idsOf(first)).toEqual([2]);
    expect(first?.next).toEqual({ upTo: 2, open: [1] });
    log.add({ found: [change(1)], xmin: 7, nextXid: 7, writersFrom: null });
    expect(idsOf(log.after(first!.next, 10))).toEqual([1]);
    expect(log.position).toEqual({ upTo: 2, open: [] });
  });

  it('settles a gap once every transaction that could fill it has ended, and no earlier', () => {
    const log = new ChangeLog(0, []);
    const poll = (xmin: number, writersFrom: number | null = null): readonly number[] => {
      log.add({ found: [], xmin, nextXid: 9, writersFrom });
      return log.position.open;
    };
    log.add({ found: [change(2)], xmin: 5, nextXid: 7, writersFrom: null });
    expect(poll(6)).toEqual([1]);
    // The cluster's xmin does not move, but no transaction below 7 writes to the history. The log uses that
    // from the next snapshot on.
    expect(poll(6, 7)).toEqual([1]);
    expect(poll(6)).toEqual([]);
  });

  it('does not advance past more gaps than a position can name', () => {
    const log = new ChangeLog(0, []);
    const result = { found: [change(2_501)], xmin: 1, nextXid: 2, writersFrom: null };
    log.add(result);
    expect(log.position).toMatchObject({ upTo: MAX_OPEN });
    for (let polls = 0; polls < 2_500 / MAX_OPEN; polls += 1) log.add({ ...result, xmin: 2 });
    expect(log.position.upTo).toBe(2_501);
  });

  it('names no more open identifiers than a cursor has room for, after a billion changes', () => {
    const distances = Array.from({ length: MAX_OPEN }, (_, index) => 1_000_000_000 + index);
    const marks = [
      [1, 'abcdefgh'],
      [2_000_000_000, 'abcdefgh'],
    ];
    const cursors = new SignedCursor(Buffer.alloc(32, 'key'));
    const cursor = cursors.encode('changes', [
      Number.MAX_SAFE_INTEGER,
      [4_000_000_000, ...marks],
      ...distances,
    ]);
    expect(pageKeyQuery.safeParse(cursor).success).toBe(true);
    expect(cursors.decode('changes', cursor)).toHaveLength(2 + MAX_OPEN);
  });

  it('retains a bounded number of changes behind an open identifier, and advances once it is settled', () => {
    const log = new ChangeLog(0, [], 2 * RETAINED_CHANGES + 100);
    const found = Array.from({ length: 3 * RETAINED_CHANGES }, (_, index) => change(index + 2));
    const poll = (xmin: number): number => {
      const { upTo } = log.position;
      log.add({ found: found.filter(({ id }) => id > upTo), xmin, nextXid: 2, writersFrom: null });
      return log.position.upTo;
    };
    expect(poll(1)).toBe(2 * RETAINED_CHANGES + 101);
    expect(poll(1)).toBe(2 * RETAINED_CHANGES + 101);
    poll(2);
    expect(poll(2)).toBe(3 * RETAINED_CHANGES + 1);
  });

  it('shares one position among readers at the end, so that their next page is built once', () => {
    const log = new ChangeLog(0, []);
    log.add({ found: [change(2), change(3)], xmin: 1, nextXid: 2, writersFrom: null });
    const [one, other] = [log.after({ upTo: 0, open: [] }, 9), log.after({ upTo: 2, open: [1] }, 9)];
    expect(one?.next).toBe(other?.next);
  });

  it('evicts the oldest changes, but none behind a gap', () => {
    const log = new ChangeLog(0, []);
    const many = (from: number, to: number): Change[] =>
      Array.from({ length: to - from + 1 }, (_, index) => change(from + index));
    log.add({
      found: [change(1), ...many(3, 2 * RETAINED_CHANGES + 2)],
      xmin: 1,
      nextXid: 2,
      writersFrom: null,
    });
    expect(log.after({ upTo: 0, open: [] }, 1)).toBeNull();
    expect(idsOf(log.after({ upTo: 1, open: [] }, 1))).toEqual([3]);
    log.add({
      found: many(2 * RETAINED_CHANGES + 3, 2 * RETAINED_CHANGES + 4),
      xmin: 2,
      nextXid: 2,
      writersFrom: null,
    });
    expect(log.after({ upTo: 1, open: [] }, 1)).toBeNull();
    expect(idsOf(log.after({ upTo: 2 * RETAINED_CHANGES, open: [] }, 9))).toHaveLength(4);
  });

  it('delivers every committed change once, in order per setting, to a reader that moves between replicas', () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant('write' as const), setting: fc.nat(3), transaction: fc.nat(2) }),
      fc.record({ do: fc.constant('end' as const), transaction: fc.nat(2), commits: fc.boolean() }),
      fc.record({
        do: fc.constant('poll' as const),
        replica: fc.nat(1),
        asks: fc.boolean(),
        limit: fc.integer({ min: 1, max: 9 }),
      }),
      fc.record({
        do: fc.constant('read' as const),
        replica: fc.nat(1),
        limit: fc.integer({ min: 1, max: 5 }),
      }),
      fc.record({
        do: fc.constant('readStored' as const),
        replica: fc.nat(1),
        limit: fc.integer({ min: 1, max: 5 }),
      }),
    );
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 60, size: 'max' }),
        fc.boolean(),
        (steps, hasOldTransaction) => {
          const history = new HistoryModel(hasOldTransaction);
          const replicas = [new ChangeLog(0, []), new ChangeLog(0, [])] as const;
          const told: Change[] = [];
          let position: Position = { upTo: 0, open: [] };
          const take = (page: ChangePage): boolean => {
            told.push(...page.changes);
            position = page.next;
            return page.hasMore;
          };
          for (const each of steps) {
            if (each.do === 'write') history.write(String(each.setting), each.transaction);
            else if (each.do === 'end') history.end(each.transaction, each.commits);
            else {
              const log = replicas[each.replica]!;
              if (each.do === 'poll') log.add(history.seenFrom(log.position, each.asks, each.limit));
              else if (each.do === 'read') take(log.after(position, each.limit)!);
              else {
                const { found } = history.seenFrom(position, false);
                const end = log.position;
                const unseen = found.filter(({ id }) => id <= end.upTo || position.open.includes(id));
                take(pageAfter(position, unseen.slice(0, each.limit + 1), each.limit, end));
              }
            }
          }
          while (history.openTransactions > 0) history.end(0, true);
          for (const log of replicas) while (log.add(history.seenFrom(log.position, true)));
          while (take(replicas[0].after(position, 3)!));
          expect(told.map(({ id }) => id).sort((a, b) => a - b)).toEqual(
            history.committed.map(({ id }) => id).sort((a, b) => a - b),
          );
          for (const name of new Set(told.map(({ settingName }) => settingName))) {
            const ids = told.filter(({ settingName }) => settingName === name).map(({ id }) => id);
            expect(ids).toEqual(ids.toSorted((a, b) => a - b));
          }
        },
      ),
      { numRuns: 3_000 },
    );
  });
});
