import { inTransaction, type Isolation } from '@platform/database';
import type { DataSource, EntityManager } from 'typeorm';

/** One message at one queue. */
export interface InboxEntry {
  readonly queue: string;
  readonly messageId: string;
  readonly messageName: string;
}

/** Rows that one statement forgets at most, so that it ends long before the server's limit, however long the backlog. */
const PURGE_BATCH = 10_000;

/** Which messages were applied: a row per queue and message, written in the transaction of its handler. */
export class Inbox {
  private readonly table: string;

  /** @param onDuplicate told of a message that was applied before */
  constructor(
    private readonly dataSource: DataSource,
    private readonly onDuplicate: (entry: InboxEntry) => void = () => undefined,
  ) {
    this.table = inboxTable(dataSource);
  }

  /** Runs `work` in one transaction with the message's row, unless that row is there already. Gives the answer that `work` gave,
   *  now or when the message came first. Two deliveries of one message at the same time wait for each other at the row. */
  apply(
    entry: InboxEntry,
    isolation: Isolation,
    work: (transaction: EntityManager) => Promise<string | null>,
  ): Promise<string | null> {
    const { queue, messageId, messageName } = entry;
    return inTransaction(this.dataSource, isolation, async (transaction) => {
      const inserted = await transaction.query<unknown[]>(
        `INSERT INTO ${this.table} (queue, message_id, message_name) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING RETURNING 1`,
        [queue, messageId, messageName],
      );
      if (inserted.length === 0) {
        this.onDuplicate(entry);
        return this.findAnswer(transaction, entry);
      }
      const answer = await work(transaction);
      if (answer !== null) {
        await transaction.query(`UPDATE ${this.table} SET answer = $3 WHERE queue = $1 AND message_id = $2`, [
          queue,
          messageId,
          answer,
        ]);
      }
      return answer;
    });
  }

  /** Forgets messages applied more than `days` ago, batch by batch. Safe on all replicas at once. */
  async purge(days: number, isStopping: () => boolean = () => false): Promise<void> {
    let forgotten = PURGE_BATCH;
    while (forgotten === PURGE_BATCH && !isStopping()) forgotten = await this.purgeBatch(days);
  }

  private async purgeBatch(days: number): Promise<number> {
    const rows = await this.dataSource.query<{ count: number }[]>(
      `WITH forgotten AS (
         DELETE FROM ${this.table} WHERE ctid = ANY (ARRAY(
           SELECT ctid FROM ${this.table} WHERE applied_at < now() - make_interval(days => $1) LIMIT $2))
         RETURNING 1
       ) SELECT count(*)::int AS count FROM forgotten`,
      [days, PURGE_BATCH],
    );
    return rows[0]?.count ?? 0;
  }

  private async findAnswer(
    transaction: EntityManager,
    { queue, messageId }: InboxEntry,
  ): Promise<string | null> {
    const rows = await transaction.query<{ answer: string | null }[]>(
      `SELECT answer FROM ${this.table} WHERE queue = $1 AND message_id = $2`,
      [queue, messageId],
    );
    return rows[0]?.answer ?? null;
  }
}

function inboxTable(dataSource: DataSource): string {
  const schema = (dataSource.options as { schema?: string }).schema ?? 'public';
  return `"${schema}"."inbox"`;
}
