import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { isInFuture } from '@platform/database';
import { SECOND_MS } from '@platform/time';
import { Repository } from 'typeorm';
import type { EntityManager } from 'typeorm';
import { RELAY_POOL } from '../database-layout';
import { PARTITION_COUNT } from './outbound-event';
import { type Batch, type ReadEvent, withoutHeld } from './held-events';
import { OutboxPause } from './outbox-pause.entity';
import { EVENT_COLUMNS, HAS_REFUSED_BEFORE, readUnlocked } from './outbox-reads';
import { LONGEST_DELAY_MS } from './publish-batch';
import type { RefusedType } from './publish-batch';

/** A paused type that this replica has claimed for a probe. */
export type ClaimedType = Pick<OutboxPause, 'messageType' | 'reason' | 'refusals' | 'probeSize'>;

/** A paused type and the seconds since its pause began. */
export interface PausedType extends Pick<OutboxPause, 'messageType' | 'reason'> {
  readonly seconds: number;
}

/** State of a pause after an unsuccessful probe. */
export type NextProbe = Pick<
  OutboxPause,
  'messageType' | 'reason' | 'lastError' | 'refusals' | 'probeSize'
> & {
  readonly delayMs: number;
};

/**
 * Lease on a probe: longer than a probe takes. If the replica crashes, another one probes the type after this
 * time.
 */
const PROBE_LEASE_MS = 10_000;
/** Additional events that a probe reads, because some may be locked by other transactions. */
const HELD_RESERVE = 100;

// Hand-written SQL: inserts in a fixed order, so that passes which pause several types do not deadlock.
const PAUSE = `
  INSERT INTO task.outbox_pauses (message_type, reason, last_error, next_probe_at)
  SELECT message_type, reason, error, clock_timestamp() + $4 * interval '1 millisecond'
  FROM unnest($1::text[], $2::text[], $3::text[]) AS refused (message_type, reason, error)
  ORDER BY message_type
  ON CONFLICT DO NOTHING`;

// Hand-written SQL: SKIP LOCKED, so that only one replica probes a type.
const CLAIM = `
  WITH due AS MATERIALIZED (
    SELECT message_type FROM task.outbox_pauses
    WHERE message_type = ANY ($1::text[]) AND NOT ${isInFuture('next_probe_at', LONGEST_DELAY_MS / SECOND_MS)}
    ORDER BY message_type FOR UPDATE SKIP LOCKED)
  UPDATE task.outbox_pauses AS pause SET next_probe_at = now() + $2 * interval '1 millisecond'
  FROM due WHERE pause.message_type = due.message_type
  RETURNING pause.message_type AS "messageType", reason, refusals, probe_size AS "probeSize"`;

// Hand-written SQL: reads the oldest events of each partition by its index, however long the backlog. Skips
// events that wait behind a refused one of their facility, as a pass does, and marks those that another
// transaction has locked.
const SELECT_PROBE = readUnlocked(`
    SELECT event.* FROM generate_series(0, $1 - 1) AS number CROSS JOIN LATERAL (
      SELECT ctid AS place, xmax <> 0 AS touched, ${EVENT_COLUMNS}
      FROM task.outbox AS event
      WHERE partition = number AND parked_at IS NULL AND message_type = $2 AND NOT coalesce(${HAS_REFUSED_BEFORE}, false)
      ORDER BY sequence
      LIMIT $3) AS event
    ORDER BY event.sequence
    LIMIT $3`);

const CONTINUE = `
  UPDATE task.outbox_pauses
  SET reason = $2, last_error = $3, refusals = $4, probe_size = $5,
    next_probe_at = clock_timestamp() + $6 * interval '1 millisecond'
  WHERE message_type = $1`;

const SELECT_PAUSED = `
  SELECT message_type AS "messageType", reason, extract(epoch FROM now() - paused_at)::float8 AS seconds
  FROM task.outbox_pauses`;

/** Statements on paused message types, and the query for the events of their probes. */
@Injectable()
export class OutboxPausesRepository {
  constructor(@InjectRepository(OutboxPause, RELAY_POOL) private readonly pauses: Repository<OutboxPause>) {}

  /**
   * Pauses the types that are not paused yet.
   * @param delayMs delay before the first probe
   */
  async pause(manager: EntityManager, types: readonly RefusedType[], delayMs: number): Promise<void> {
    if (types.length === 0) return;
    await manager.query(PAUSE, [
      types.map(({ messageType }) => messageType),
      types.map(({ reason }) => reason),
      types.map(({ error }) => error),
      delayMs,
    ]);
  }

  /** Claims those of the types whose probe is due, each for one replica. */
  async claimDue(messageTypes: readonly string[]): Promise<ClaimedType[]> {
    const [rows] = await this.pauses.query<[ClaimedType[], number]>(CLAIM, [messageTypes, PROBE_LEASE_MS]);
    return rows;
  }

  /** Returns the oldest events of the type that may be published, in order, at most `probeSize`. */
  async findProbe({ messageType, probeSize }: ClaimedType): Promise<Batch> {
    // Reads more than `probeSize`, because some may be locked.
    const read = await this.pauses.query<ReadEvent[]>(SELECT_PROBE, [
      PARTITION_COUNT,
      messageType,
      probeSize + HELD_RESERVE,
    ]);
    const batch = withoutHeld(read);
    return { ...batch, events: batch.events.slice(0, probeSize) };
  }

  async continuePause(manager: EntityManager, next: NextProbe): Promise<void> {
    const { messageType, reason, lastError, refusals, probeSize, delayMs } = next;
    await manager.query(CONTINUE, [messageType, reason, lastError, refusals, probeSize, delayMs]);
  }

  /** Makes the next probe due now and sets its size. */
  async enlargeProbe(manager: EntityManager, messageType: string, probeSize: number): Promise<void> {
    const change = { probeSize, refusals: 0, nextProbeAt: (): string => 'now()' };
    await manager.update(OutboxPause, { messageType }, change);
  }

  /** Postpones the next probe without counting a refusal. */
  async postpone(manager: EntityManager, messageType: string, delayMs: number): Promise<void> {
    const nextProbeAt = (): string => `clock_timestamp() + ${String(delayMs)} * interval '1 millisecond'`;
    await manager.update(OutboxPause, { messageType }, { nextProbeAt });
  }

  /** Ends the pause of the type. */
  async release(manager: EntityManager, messageType: string): Promise<void> {
    await manager.delete(OutboxPause, { messageType });
  }

  findPaused(): Promise<PausedType[]> {
    return this.pauses.query(SELECT_PAUSED);
  }
}
