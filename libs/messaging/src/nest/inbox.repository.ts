import { inTransaction, type Isolation, PoolDriver } from '@platform/database';
import type { DataSource, EntityManager } from 'typeorm';
import { InboxMessage } from './inbox.entity';

/** One message at one queue. */
export type InboxKey = Pick<InboxMessage, 'queue' | 'messageId' | 'messageName'>;

/** Rows that one statement deletes at most, so that it ends long before the server's time limit, however long the backlog. */
const PURGE_BATCH = 10_000;

/** By hand: concurrent deliveries of one message wait for each other at the row; hot, once per message. */
const INSERT =
  'INSERT INTO inbox (queue, message_id, message_name) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING RETURNING 1';

/** By hand: bounded by LIMIT, which DELETE does not have. */
const PURGE = `
  WITH purged AS (
    DELETE FROM inbox WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM inbox WHERE applied_at < now() - make_interval(days => $1) LIMIT $2))
    RETURNING 1
  ) SELECT count(*)::int AS count FROM purged`;

/** Which messages were applied: a row per queue and message. */
export class InboxRepository {
  private running = 0;
  private readonly turns: (() => void)[] = [];

  /** @param onDuplicate told of a message that was applied before */
  constructor(
    private readonly dataSource: DataSource,
    private readonly onDuplicate: (message: InboxKey) => void = () => undefined,
  ) {}

  /** Runs `work` in one transaction with the message's row, unless that row exists already. Returns the response of `work`, given
   *  now or when the message first came. */
  apply(
    message: InboxKey,
    isolation: Isolation,
    work: (transaction: EntityManager) => Promise<string | null>,
  ): Promise<string | null> {
    return this.inTurn(() => this.applyOnce(message, isolation, work));
  }

  /** Deliveries that wait for their turn. */
  get waiting(): number {
    return this.turns.length;
  }

  /** As many at a time as there are connections. Whoever waited for a connection of the pool would fail after a while, as in an outage. */
  private async inTurn<T>(work: () => Promise<T>): Promise<T> {
    const { max = 1 } = PoolDriver.of(this.dataSource).pool.options;
    if (this.running < max) this.running += 1;
    else await new Promise<void>((resolve) => this.turns.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.turns.shift();
      if (next === undefined) this.running -= 1;
      else next();
    }
  }

  private applyOnce(
    message: InboxKey,
    isolation: Isolation,
    work: (transaction: EntityManager) => Promise<string | null>,
  ): Promise<string | null> {
    const { queue, messageId, messageName } = message;
    return inTransaction(this.dataSource, isolation, async (transaction) => {
      const inserted = await transaction.query<unknown[]>(INSERT, [queue, messageId, messageName]);
      if (inserted.length === 0) {
        this.onDuplicate(message);
        const applied = await transaction.findOneBy(InboxMessage, { queue, messageId });
        return applied?.response ?? null;
      }
      const response = await work(transaction);
      if (response !== null) await transaction.update(InboxMessage, { queue, messageId }, { response });
      return response;
    });
  }

  /** Deletes messages applied more than `days` ago, batch by batch. Safe on all replicas at once. */
  async purge(days: number, isStopping: () => boolean = () => false): Promise<void> {
    let deleted = PURGE_BATCH;
    while (deleted === PURGE_BATCH && !isStopping()) {
      const rows = await this.dataSource.query<{ count: number }[]>(PURGE, [days, PURGE_BATCH]);
      deleted = rows[0]?.count ?? 0;
    }
  }
}
