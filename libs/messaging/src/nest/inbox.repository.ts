import { inTransaction, type Isolation, PoolDriver } from '@platform/database';
import type { DataSource, EntityManager } from 'typeorm';
import { ReusedMessageIdError } from '../errors';
import { type Claimant, ConnectionShares } from './connection-shares';
import { InboxMessage } from './inbox.entity';

/** One message at one queue. */
export type InboxKey = Pick<InboxMessage, 'queue' | 'messageId' | 'messageName' | 'contentHash'>;

/**
 * Rows that one statement deletes at most, so that it ends long before the server's time limit, however long
 * the backlog.
 */
const PURGE_BATCH = 10_000;

/** Hand-written SQL: concurrent deliveries of one message wait for each other at the row; hot, once per
 *  message. The same round trip sets how long the transaction waits for any lock. */
const INSERT = `
  INSERT INTO inbox (queue, message_id, message_name, content_hash)
  SELECT $1, $2, $3, $4 FROM set_config('lock_timeout', coalesce($5, current_setting('lock_timeout')), true)
  ON CONFLICT DO NOTHING RETURNING 1`;

/** Hand-written SQL: bounded by LIMIT, which DELETE does not have. */
const PURGE = `
  WITH purged AS (
    DELETE FROM inbox WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM inbox WHERE applied_at < now() - make_interval(days => $1) LIMIT $2))
    RETURNING 1
  ) SELECT count(*)::int AS count FROM purged`;

/** Which messages were applied: a row per queue and message. */
export class InboxRepository {
  private readonly shares: ConnectionShares;

  /** @param onDuplicate told of a message that was applied before */
  constructor(
    private readonly dataSource: DataSource,
    private readonly onDuplicate: (message: InboxKey) => void = () => undefined,
  ) {
    this.shares = new ConnectionShares(() => PoolDriver.of(this.dataSource).pool.options.max ?? 1);
  }

  /**
   * Runs `work` in one transaction with the message's row, unless that row exists already. Returns the
   * response of `work`, given now or when the message first came.
   * @param share whose part of the connections it takes
   * @throws {ReusedMessageIdError} if another message came under its id
   * @throws as {@link ConnectionShares.run}
   */
  apply(
    message: InboxKey,
    isolation: Isolation,
    work: (transaction: EntityManager) => Promise<string | null>,
    share: Omit<Claimant, 'queue'> = { isRequest: false, key: null },
  ): Promise<string | null> {
    const claimant = { queue: message.queue, ...share };
    return this.shares.run(claimant, (lockWaitMs) => this.applyOnce(message, isolation, work, lockWaitMs));
  }

  /** Deliveries that wait for their turn. */
  get waiting(): number {
    return this.shares.waiting;
  }

  private applyOnce(
    message: InboxKey,
    isolation: Isolation,
    work: (transaction: EntityManager) => Promise<string | null>,
    lockWaitMs: number | null,
  ): Promise<string | null> {
    const { queue, messageId, messageName, contentHash } = message;
    return inTransaction(this.dataSource, isolation, async (transaction) => {
      const inserted = await transaction.query<unknown[]>(INSERT, [
        queue,
        messageId,
        messageName,
        contentHash,
        lockWaitMs === null ? null : String(lockWaitMs),
      ]);
      if (inserted.length === 0) {
        this.onDuplicate(message);
        const applied = await transaction.findOneBy(InboxMessage, { queue, messageId });
        if (applied !== null && !isSame(applied, message)) throw new ReusedMessageIdError(messageName);
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

/** A row of release 1.0.0 does not say what the message was. */
function isSame(applied: InboxMessage, { messageName, contentHash }: InboxKey): boolean {
  return applied.messageName === messageName && (applied.contentHash ?? contentHash) === contentHash;
}
