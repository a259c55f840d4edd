import { inTransaction, type Isolation, PoolDriver } from '@platform/database';
import type { DataSource, EntityManager } from 'typeorm';
import { ReusedMessageIdError } from '../consuming/handler-errors';
import { type Claimant, ConnectionShares } from './connection-shares';
import { InboxMessage } from './inbox.entity';

/**
 * One message at one queue. `messageName` and `contentHash` show whether another message has used the same
 * id.
 */
export type InboxKey = Pick<InboxMessage, 'queue' | 'messageId' | 'messageName' | 'contentHash'>;

/**
 * Maximum rows that one statement deletes, so that it ends well within the server's time limit whatever the
 * backlog.
 */
const PURGE_BATCH = 10_000;

/**
 * Hand-written SQL, because it runs once per message. Concurrent deliveries of one message wait for each
 * other at the row. The same round trip sets the transaction's `lock_timeout`.
 */
const INSERT = `
  INSERT INTO inbox (queue, message_id, message_name, content_hash)
  SELECT $1, $2, $3, $4 FROM set_config('lock_timeout', coalesce($5, current_setting('lock_timeout')), true)
  ON CONFLICT DO NOTHING RETURNING 1`;

/** Hand-written SQL, because DELETE has no LIMIT. */
const PURGE = `
  WITH purged AS (
    DELETE FROM inbox WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM inbox WHERE applied_at < now() - make_interval(days => $1) LIMIT $2))
    RETURNING 1
  ) SELECT count(*)::int AS count FROM purged`;

/** Records which messages were applied, in one row per queue and message. */
export class InboxRepository {
  private readonly shares: ConnectionShares;

  /** @param onDuplicate called with each message that was applied before */
  constructor(
    private readonly dataSource: DataSource,
    private readonly onDuplicate: (message: InboxKey) => void = () => undefined,
  ) {
    this.shares = new ConnectionShares(() => PoolDriver.of(this.dataSource).pool.options.max ?? 1);
  }

  /**
   * Runs `work` in one transaction with the message's inbox row, unless that row exists already. Returns the
   * response of `work`, or the stored response if the row exists.
   * @param share the delivery's claim to one of the shared connections
   * @throws {ReusedMessageIdError} if another message was applied under the same id
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

  /** Number of deliveries that wait for a connection. */
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

  /**
   * Deletes the rows of messages applied more than `days` ago, in batches. Safe to run on all replicas at
   * once.
   */
  async purge(days: number, isStopping: () => boolean = () => false): Promise<void> {
    let deleted = PURGE_BATCH;
    while (deleted === PURGE_BATCH && !isStopping()) {
      const rows = await this.dataSource.query<{ count: number }[]>(PURGE, [days, PURGE_BATCH]);
      deleted = rows[0]?.count ?? 0;
    }
  }
}

/** Whether both are the same message. A row of release 1.0.0 has no hash, so only the name is compared. */
function isSame(applied: InboxMessage, { messageName, contentHash }: InboxKey): boolean {
  return applied.messageName === messageName && (applied.contentHash ?? contentHash) === contentHash;
}
