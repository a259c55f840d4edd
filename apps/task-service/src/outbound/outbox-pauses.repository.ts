import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { isStillToCome } from '@platform/database';
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

/** A type that this replica is to probe now. */
export type ClaimedType = Pick<OutboxPause, 'messageType' | 'reason' | 'refusals' | 'probeSize'>;

/** For how long a type waits. */
export interface PausedType extends Pick<OutboxPause, 'messageType' | 'reason'> {
  readonly seconds: number;
}

/** How a type goes on waiting. */
export type NextProbe = Pick<
  OutboxPause,
  'messageType' | 'reason' | 'lastError' | 'refusals' | 'probeSize'
> & {
  readonly delayMs: number;
};

/** Longer than a probe takes. A replica that ended in between leaves the type to another one after this. */
const PROBE_LEASE_MS = 10_000;
/** Events that a probe can pass over because somebody else has locked them. */
const HELD_RESERVE = 100;

// Hand-written SQL: passes pause types in one order, so that none waits for another crosswise.
const PAUSE = `
  INSERT INTO task.outbox_pauses (message_type, reason, last_error, next_probe_at)
  SELECT message_type, reason, error, clock_timestamp() + $4 * interval '1 millisecond'
  FROM unnest($1::text[], $2::text[], $3::text[]) AS refused (message_type, reason, error)
  ORDER BY message_type
  ON CONFLICT DO NOTHING`;

// Hand-written SQL: SKIP LOCKED, so that one replica probes a type.
const CLAIM = `
  WITH due AS MATERIALIZED (
    SELECT message_type FROM task.outbox_pauses
    WHERE message_type = ANY ($1::text[]) AND NOT ${isStillToCome('next_probe_at', LONGEST_DELAY_MS / SECOND_MS)}
    ORDER BY message_type FOR UPDATE SKIP LOCKED)
  UPDATE task.outbox_pauses AS pause SET next_probe_at = now() + $2 * interval '1 millisecond'
  FROM due WHERE pause.message_type = due.message_type
  RETURNING pause.message_type AS "messageType", reason, refusals, probe_size AS "probeSize"`;

// Hand-written SQL: the oldest of each partition by its index, however long the backlog. An event whose
// facility waits for one of its own is left out, as in a pass, and so is one that somebody else has locked.
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

/** Message types that wait as a whole, and the events that probe them. */
@Injectable()
export class OutboxPausesRepository {
  constructor(@InjectRepository(OutboxPause, RELAY_POOL) private readonly pauses: Repository<OutboxPause>) {}

  /** Has the types wait, unless they wait already. @param delayMs before the first probe */
  async pause(manager: EntityManager, types: readonly RefusedType[], delayMs: number): Promise<void> {
    if (types.length === 0) return;
    await manager.query(PAUSE, [
      types.map(({ messageType }) => messageType),
      types.map(({ reason }) => reason),
      types.map(({ error }) => error),
      delayMs,
    ]);
  }

  /** Those of the types whose probe is due, each for one replica. */
  async claimDue(messageTypes: readonly string[]): Promise<ClaimedType[]> {
    const [rows] = await this.pauses.query<[ClaimedType[], number]>(CLAIM, [messageTypes, PROBE_LEASE_MS]);
    return rows;
  }

  /** The oldest events of the type that may be published, in order, at most `probeSize`. */
  async findProbe({ messageType, probeSize }: ClaimedType): Promise<Batch> {
    // More than that, because some may be held.
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

  /** Has the next probe, at once, publish more. */
  async enlargeProbe(manager: EntityManager, messageType: string, probeSize: number): Promise<void> {
    const change = { probeSize, refusals: 0, nextProbeAt: (): string => 'now()' };
    await manager.update(OutboxPause, { messageType }, change);
  }

  /** Postpones the next probe and changes nothing else: the bus is away. */
  async postpone(manager: EntityManager, messageType: string, delayMs: number): Promise<void> {
    const nextProbeAt = (): string => `clock_timestamp() + ${String(delayMs)} * interval '1 millisecond'`;
    await manager.update(OutboxPause, { messageType }, { nextProbeAt });
  }

  /** Lets the type flow again. */
  async release(manager: EntityManager, messageType: string): Promise<void> {
    await manager.delete(OutboxPause, { messageType });
  }

  findPaused(): Promise<PausedType[]> {
    return this.pauses.query(SELECT_PAUSED);
  }
}
