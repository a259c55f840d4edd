import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { queryPrepared } from '@platform/database';
import { Any, IsNull, Not, Raw, Repository } from 'typeorm';
import type { EntityManager, FindOptionsWhere } from 'typeorm';
import { RELAY_POOL } from '../database-layout';
import { OutboxMessage } from './outbox-message.entity';
import type { FacilityTurn } from './facility-turns';
import { type Batch, type ReadEvent, withoutHeld } from './held-events';
import type { NewOutboxMessage } from './outbox-message.entity';
import { PARTITION_COUNT } from './outbound-event';
import type { OutboxFloor, OutboxHead } from './outbox-floors';
import { BEHIND_FLOOR, NO_SORT, SELECT_BATCH, SELECT_TURNS } from './outbox-reads';
import type { BatchOutcome } from './publish-batch';

/** Parked events selected by an operator; null selects all. */
export interface ParkedChoice {
  readonly ids: ReadonlySet<string> | null;
  readonly facilityId: number | null;
}

/** Selected events, either parked or waiting. */
interface EventChoice extends ParkedChoice {
  readonly isParked: boolean;
}

/** Selection of the events that a pass reads. */
export interface BatchChoice {
  readonly partitions: readonly number[];
  readonly messageTypes: readonly string[];
  /** Maximum events of each partition. */
  readonly limit: number;
  /** Chains to skip. Default: none. */
  readonly heldChains?: readonly string[];
  /** Positions above which to read. Default: read from the beginning. */
  readonly floors?: readonly OutboxFloor[];
  /** Partitions whose facilities take turns. Default: none. */
  readonly turns?: readonly FacilityTurn[];
}

/** Called after each batch with the number of events done so far. */
type Progress = (done: number) => void;

/** Number of events of one type that wait, or that are parked. */
export interface OutboxStatus {
  readonly messageType: string;
  readonly isParked: boolean;
  readonly messages: number;
  readonly since: Date;
  /** Error of one refusal; null if none was refused. */
  readonly lastError: string | null;
}

/** Size of the outbox. */
export interface OutboxBacklog {
  /** Waiting events, counted up to 10,000. */
  readonly waiting: number;
  /**
   * Parked events. The number is exact, except while floors are in use: then they are counted up to 10,000 in
   * index order, which reads no dead row.
   */
  readonly parked: number;
  /** Age of the oldest event that is not parked; 0 if none waits. */
  readonly oldestAgeSeconds: number;
}

/**
 * First key of the relay's advisory locks; the second is the partition. Any constant that no other code uses.
 */
const RELAY_LOCK_CLASS = 0x7461_736b;
/**
 * Time after which the server ends an idle pass, and with it its locks. A running pass is never idle that
 * long: at its time limit it starts no publish, and a publish takes no longer than its confirm timeout.
 */
const FROZEN_PASS_LIMIT_MS = 10_000;
/**
 * Maximum wait for a row lock. A pass publishes nothing that was locked when it read. If another transaction
 * locks an event while it is published, the pass fails after this time: its events are published again, and
 * the next pass skips the locked one.
 */
const LOCK_WAIT_MS = 250;
const COUNT_LIMIT = 10_000;
const CHANGE_BATCH = 1_000;
/**
 * Upper limit of `attempts`: without it, one more attempt could overflow the column and fail the whole
 * partition.
 */
const MAX_ATTEMPTS = 1_000_000;
const PARKED_ORDER = { parkedAt: 'ASC', partition: 'ASC', sequence: 'ASC' } as const;

const STORE = {
  name: 'store-outbox-messages',
  text: `
  INSERT INTO task.outbox (partition, facility_id, message_id, message_type, conversation_id, sent_at, trace_headers, message)
  SELECT partition, facility_id, message_id, message_type, conversation_id, sent_at, trace_headers, message
  FROM unnest($1::smallint[], $2::bigint[], $3::uuid[], $4::text[], $5::text[], $6::timestamptz[], $7::json[], $8::json[])
    WITH ORDINALITY AS event (partition, facility_id, message_id, message_type, conversation_id, sent_at, trace_headers,
      message, position)
  ORDER BY position`,
};

// Locks partitions and configures the transaction. The commit does not wait for the disk: after a crash of
// the server, settled events may be published again.
const LOCK = `
  SELECT array_agg(partition) AS partitions, set_config('task.partitions', coalesce(array_agg(partition), '{}')::text, true),
    set_config('synchronous_commit', 'off', true), set_config('lock_timeout', '${String(LOCK_WAIT_MS)}', true),
    set_config('idle_in_transaction_session_timeout', '${String(FROZEN_PASS_LIMIT_MS)}', true), ${NO_SORT}
  FROM unnest($2::int[]) AS wanted (partition) WHERE pg_try_advisory_xact_lock($1, partition)`;

// Deletes by index regardless of the statistics: in a join with the positions, a table that was small when it
// was analysed would be scanned as a whole. Sequence numbers are unique; the partitions are named only
// because the index begins with them.
const DELETE_SENT = `DELETE FROM task.outbox WHERE partition = ANY ($1::smallint[]) AND sequence = ANY ($2::bigint[])`;

const MARK_REFUSED = `
  UPDATE task.outbox AS event
  SET attempts = least(attempts, $6) + refused.counts::integer, last_error = refused.error,
    next_attempt_at = clock_timestamp() + coalesce(refused.delay_ms, 0) * interval '1 millisecond',
    parked_at = CASE WHEN refused.delay_ms IS NULL THEN clock_timestamp() END
  FROM unnest($2::bigint[], $3::float8[], $4::text[], $5::boolean[]) AS refused (sequence, delay_ms, error, counts)
  WHERE event.partition = ANY ($1::smallint[]) AND event.sequence = refused.sequence`;

// The message types to read in each partition, with their floors: one index probe for each, however long the
// backlog. Types that only a newer release knows are missing; that release reads them.
const WANTED = `
  SELECT partition, message_type, coalesce(floor.sequence, 0) AS floor
  FROM unnest($1::smallint[]) AS partition CROSS JOIN unnest($2::text[]) AS message_type
  LEFT JOIN unnest($3::smallint[], $4::text[], $5::bigint[]) AS floor (partition, message_type, sequence)
    USING (partition, message_type)`;
const SELECT_HEADS = `
  SELECT partition, message_type AS "messageType", pg_sequence_last_value('task.outbox_sequence_seq') AS last, (
    SELECT sequence FROM task.outbox AS event
    WHERE event.partition = wanted.partition AND parked_at IS NULL AND ${BEHIND_FLOOR}
    ORDER BY message_type, sequence LIMIT 1) AS sequence
  FROM (${WANTED}) AS wanted`;

// Counts only up to a limit, because an exact count reads the whole backlog. The oldest event is the head of
// one of the partitions.
const SELECT_BACKLOG = `
  SELECT (SELECT count(*)::int FROM (SELECT 1 FROM task.outbox WHERE parked_at IS NULL LIMIT $1) AS counted) AS waiting,
    (SELECT count(*)::int FROM task.outbox WHERE parked_at IS NOT NULL) AS parked,
    coalesce((SELECT extract(epoch FROM now() - min(created_at))::float8 FROM (
      SELECT (SELECT created_at FROM task.outbox AS event WHERE event.partition = number AND parked_at IS NULL
        ORDER BY sequence LIMIT 1) AS created_at
      FROM generate_series(0, $2 - 1) AS number) AS heads), 0) AS "oldestAgeSeconds"`;

// The same backlog, read above the floors, for the types that this release publishes.
const SELECT_BACKLOG_ABOVE = `
  WITH wanted AS MATERIALIZED (${WANTED})
  SELECT (SELECT count(*)::int FROM (
      SELECT 1 FROM wanted CROSS JOIN LATERAL (
        SELECT 1 FROM task.outbox AS event
        WHERE event.partition = wanted.partition AND parked_at IS NULL AND ${BEHIND_FLOOR}
        ORDER BY message_type, sequence LIMIT $6) AS event
      LIMIT $6) AS counted) AS waiting,
    (SELECT count(*)::int FROM (
      SELECT 1 FROM task.outbox WHERE parked_at IS NOT NULL ORDER BY parked_at LIMIT $6) AS counted) AS parked,
    coalesce((SELECT extract(epoch FROM now() - min(created_at))::float8 FROM (
      SELECT (SELECT created_at FROM task.outbox AS event
        WHERE event.partition = wanted.partition AND parked_at IS NULL AND ${BEHIND_FLOOR}
        ORDER BY message_type, sequence LIMIT 1) AS created_at
      FROM wanted) AS heads), 0) AS "oldestAgeSeconds"`;

// Hand-written SQL: aggregates over the whole table, for operators.
const SELECT_STATUS = `
  SELECT message_type AS "messageType", parked_at IS NOT NULL AS "isParked", count(*)::int AS messages,
    min(coalesce(parked_at, created_at)) AS since, min(last_error) AS "lastError"
  FROM task.outbox GROUP BY message_type, parked_at IS NOT NULL ORDER BY since`;

/**
 * All statements that change the outbox, except two that store an event together with its cause:
 * `SchedulesRepository.insert` and `TriggersRepository.fireDue`. Probes and reconciliation read it in their
 * own statements.
 */
@Injectable()
export class OutboxRepository {
  constructor(
    @InjectRepository(OutboxMessage, RELAY_POOL) private readonly messages: Repository<OutboxMessage>,
  ) {}

  /**
   * Stores the messages in the caller's transaction. A facility's events are published in this order. The
   * statement is prepared because it runs for nearly every event.
   */
  async store(manager: EntityManager, messages: readonly NewOutboxMessage[]): Promise<void> {
    const column = <T>(pick: (message: NewOutboxMessage) => T): T[] => messages.map(pick);
    await queryPrepared(manager, STORE, [
      column(({ partition }) => partition),
      column(({ facilityId }) => facilityId),
      column(({ messageId }) => messageId),
      column(({ messageType }) => messageType),
      column(({ conversationId }) => conversationId),
      column(({ sentAt }) => sentAt),
      column(({ traceHeaders }) => JSON.stringify(traceHeaders)),
      column(({ message }) => JSON.stringify(message)),
    ]);
  }

  /**
   * Locks the partitions that no other replica has locked, so that one replica at a time publishes each and
   * keeps its order. Returns for each the oldest events that may be published now, in order; where facilities
   * take turns, the oldest of the facilities whose turn it is. Skips an event that another transaction has
   * locked, and the later events of its facility and type. The locks end with the transaction or connection:
   * a crashed replica holds none, and the server ends a frozen one. Hand-written SQL: advisory locks, SKIP
   * LOCKED.
   */
  async lockBatches(
    manager: EntityManager,
    { partitions, messageTypes, limit, heldChains = [], floors = [], turns = [] }: BatchChoice,
  ): Promise<Map<number, Batch>> {
    const [turnPartitions, afterFacilities] = [
      turns.map(({ partition }) => partition),
      turns.map(({ afterFacility }) => afterFacility),
    ];
    // Sends all statements in one packet. A single statement would take its snapshot before it has the locks,
    // and would still see events that the last holder has published.
    const [[lock], oldest, ofTurns] = await Promise.all([
      manager.query<{ partitions: number[] | null }[]>(LOCK, [RELAY_LOCK_CLASS, partitions]),
      manager.query<ReadEvent[]>(SELECT_BATCH, [
        messageTypes,
        limit,
        heldChains,
        ...floorColumns(floors),
        turnPartitions,
      ]),
      turns.length === 0
        ? []
        : manager.query<ReadEvent[]>(SELECT_TURNS, [
            messageTypes,
            limit,
            heldChains,
            turnPartitions,
            afterFacilities,
          ]),
    ]);
    const read = new Map((lock?.partitions ?? []).map((partition) => [partition, [] as ReadEvent[]]));
    for (const event of [...oldest, ...ofTurns]) read.get(event.partition)?.push(event);
    return new Map([...read].map(([partition, found]) => [partition, withoutHeld(found)]));
  }

  /**
   * Makes the transaction fail instead of waiting longer than LOCK_WAIT_MS for a lock. Hand-written SQL: a
   * setting.
   */
  async limitLockWait(manager: EntityManager): Promise<void> {
    await manager.query(`SELECT set_config('lock_timeout', $1, true)`, [String(LOCK_WAIT_MS)]);
  }

  /**
   * Deletes the events that the broker confirmed and updates those that it refused. Hand-written SQL:
   * batches.
   */
  async settle(
    manager: EntityManager,
    partitions: readonly number[],
    { sent, refused }: Pick<BatchOutcome, 'sent' | 'refused'>,
  ): Promise<void> {
    if (sent.length > 0) await manager.query(DELETE_SENT, [partitions, sent.map(({ sequence }) => sequence)]);
    if (refused.length > 0) {
      await manager.query(MARK_REFUSED, [
        partitions,
        refused.map(({ sequence }) => sequence),
        refused.map(({ delayMs }) => delayMs),
        refused.map(({ error }) => error),
        refused.map(({ countsAsAttempt }) => countsAsAttempt),
        MAX_ATTEMPTS,
      ]);
    }
  }

  /**
   * Returns the oldest event of each type in each partition, including paused types and locked events, and
   * the last sequence number that was assigned.
   */
  async readHeads({
    partitions,
    messageTypes,
    floors = [],
  }: Pick<BatchChoice, 'partitions' | 'messageTypes' | 'floors'>): Promise<{
    heads: OutboxHead[];
    last: string;
  }> {
    const values = [partitions, messageTypes, ...floorColumns(floors)];
    const rows = await this.queryByIndex<OutboxHead & { last: string | null }>(SELECT_HEADS, values);
    return { heads: rows, last: rows[0]?.last ?? '0' };
  }

  async readBacklog(): Promise<OutboxBacklog> {
    const rows: OutboxBacklog[] = await this.messages.query(SELECT_BACKLOG, [COUNT_LIMIT, PARTITION_COUNT]);
    return rows[0] ?? NO_BACKLOG;
  }

  /** Returns the backlog of these types, read above the floors. */
  async readBacklogAbove({
    partitions,
    messageTypes,
    floors = [],
  }: Pick<BatchChoice, 'partitions' | 'messageTypes' | 'floors'>): Promise<OutboxBacklog> {
    const values = [partitions, messageTypes, ...floorColumns(floors), COUNT_LIMIT];
    const rows = await this.queryByIndex<OutboxBacklog>(SELECT_BACKLOG_ABOVE, values);
    return rows[0] ?? NO_BACKLOG;
  }

  /** Runs a query with NO_SORT. Hand-written SQL: a setting. */
  private queryByIndex<Row>(sql: string, values: readonly unknown[]): Promise<Row[]> {
    return this.messages.manager.transaction(async (manager) => {
      await manager.query(`SELECT ${NO_SORT}`);
      return manager.query<Row[]>(sql, [...values]);
    });
  }

  /** Returns the numbers of waiting and parked events by message type, oldest first. */
  readStatus(): Promise<OutboxStatus[]> {
    return this.messages.query(SELECT_STATUS);
  }

  /** Returns the selected events, longest parked first. */
  findEvents(choice: EventChoice, limit?: number): Promise<OutboxMessage[]> {
    return this.messages.find({
      where: selection(choice),
      order: PARKED_ORDER,
      ...(limit !== undefined && { take: limit }),
    });
  }

  /** Returns the selected parked events to the relay and resets their attempts. */
  replayParked(choice: ParkedChoice, progress: Progress): Promise<OutboxMessage[]> {
    const fresh = { parkedAt: null, attempts: 0, nextAttemptAt: () => 'now()' };
    return this.changeEvents({ ...choice, isParked: true }, progress, (manager, where) =>
      manager.update(OutboxMessage, where, fresh),
    );
  }

  /** Parks the selected waiting events, which unblocks the events behind them. */
  skipWaiting(choice: ParkedChoice, progress: Progress): Promise<OutboxMessage[]> {
    return this.changeEvents({ ...choice, isParked: false }, progress, (manager, where) =>
      manager.update(OutboxMessage, where, { parkedAt: () => 'now()' }),
    );
  }

  /** Deletes the selected parked events. */
  discardParked(choice: ParkedChoice, progress: Progress): Promise<OutboxMessage[]> {
    return this.changeEvents({ ...choice, isParked: true }, progress, (manager, where) =>
      manager.delete(OutboxMessage, where),
    );
  }

  /** Changes the selected events in batches. A changed event no longer matches the selection. */
  private async changeEvents(
    choice: EventChoice,
    progress: Progress,
    change: (manager: EntityManager, where: FindOptionsWhere<OutboxMessage>) => Promise<unknown>,
  ): Promise<OutboxMessage[]> {
    const changed: OutboxMessage[] = [];
    for (;;) {
      const batch = await this.messages.manager.transaction(async (manager) => {
        const found = await manager.find(OutboxMessage, {
          where: selection(choice),
          order: PARKED_ORDER,
          take: CHANGE_BATCH,
          lock: { mode: 'pessimistic_write' },
        });
        await change(manager, { sequence: Any(found.map(({ sequence }) => sequence)) });
        return found;
      });
      changed.push(...batch);
      if (batch.length < CHANGE_BATCH) return changed;
      progress(changed.length);
    }
  }
}

const NO_BACKLOG: OutboxBacklog = { waiting: 0, parked: 0, oldestAgeSeconds: 0 };

function floorColumns(floors: readonly OutboxFloor[]): [number[], string[], string[]] {
  return [
    floors.map(({ partition }) => partition),
    floors.map(({ messageType }) => messageType),
    floors.map(({ sequence }) => sequence),
  ];
}

// Builds the filter of the selected events. Waiting events belong to the relay, so naming their ids does not
// select them; `isParked: false` does.
function selection({ ids, facilityId, isParked }: EventChoice): FindOptionsWhere<OutboxMessage> {
  const texts = ids === null ? null : [...ids].map((id) => id.toLowerCase());
  return {
    parkedAt: isParked ? Not(IsNull()) : IsNull(),
    ...(texts && { messageId: Raw((column) => `CAST(${column} AS text) = ANY (:texts)`, { texts }) }),
    ...(facilityId !== null && { facilityId }),
  };
}
