import { isInFuture } from '@platform/database';
import { SECOND_MS } from '@platform/time';
import { LONGEST_DELAY_MS } from './publish-batch';

/** Columns of an event that the relay reads. */
export const EVENT_COLUMNS = `partition, sequence, facility_id::float8 AS "facilityId", message_id AS "messageId",
  message_type AS "messageType", conversation_id AS "conversationId", sent_at AS "sentAt", trace_headers AS "traceHeaders", message, attempts`;

/**
 * Condition: an event of the same facility and type, itself or an earlier one, was refused and waits for its
 * next attempt.
 */
export const HAS_REFUSED_BEFORE = `(
  SELECT true FROM task.outbox AS refused
  WHERE refused.partition = event.partition AND refused.facility_id = event.facility_id
    AND refused.message_type = event.message_type AND refused.sequence <= event.sequence
    AND refused.parked_at IS NULL AND refused.attempts > 0
    AND ${isInFuture('refused.next_attempt_at', LONGEST_DELAY_MS / SECOND_MS)}
  LIMIT 1)`;

/**
 * Condition: events of the wanted type above its floor. It is a row comparison, so that with ORDER BY
 * message_type, sequence only `outbox_waiting` provides the order. The primary key, which does not contain
 * the type, would read the events of all types for each type. Statements that use this condition need
 * NO_SORT.
 */
export const BEHIND_FLOOR = `(event.message_type, event.sequence) > (wanted.message_type, wanted.floor)
          AND event.message_type <= wanted.message_type`;

/**
 * Settings that make a transaction read rows in index order instead of sorting them. If statistics were
 * collected while nothing waited and an old snapshot kept published events, the planner expects one row from
 * every index. It then prefers the smallest index and a sort of everything found in it.
 */
export const NO_SORT = `set_config('enable_sort', 'off', true), set_config('enable_incremental_sort', 'off', true)`;

/**
 * Builds a statement that reads the events of a batch in order, and returns for each event whether it can be
 * settled now. `xmax` is 0 for a row that no transaction has touched, the usual case; such a row needs no
 * lock here. Other rows are locked by `ctid`, without an index lookup, unless another transaction holds them.
 * `parked_at` is not tested in WHERE: the planner might then prefer an index of waiting events.
 */
export const readUnlocked = (batch: string): string => `
  WITH batch AS MATERIALIZED (${batch}), locked AS MATERIALIZED (
    SELECT partition, sequence, parked_at IS NULL AS waits FROM task.outbox
    WHERE ctid = ANY (ARRAY(SELECT place FROM batch WHERE touched))
    FOR UPDATE SKIP LOCKED
  )
  SELECT partition, sequence, "facilityId", "messageId", "messageType", "conversationId", "sentAt", "traceHeaders", message, attempts,
    NOT touched OR coalesce(locked.waits, false) AS "isFree"
  FROM batch LEFT JOIN locked USING (partition, sequence)
  ORDER BY sequence`;

// An event waits while an earlier one of its facility and type waits for its next attempt. Events of other
// types continue: they lead to other queues, between which the broker keeps no order anyway. Each type is
// read from its head, so at most one batch per type is touched, however long the backlog of one type is, e.g.
// while its bus is down. HAS_REFUSED_BEFORE is a sub-query with a LIMIT, evaluated per event: NOT EXISTS
// might become a join of every event with every refused one, because the planner assumes that `parked_at IS
// NULL` is rare. Paused types are skipped. An event that another transaction has locked is not published: the
// pass would wait for that lock while it holds all its partitions, and would then publish everything again.
export const SELECT_BATCH = readUnlocked(`
    SELECT batch.* FROM (
      SELECT partition FROM unnest(current_setting('task.partitions')::smallint[]) AS locked (partition)
      WHERE partition <> ALL ($7::smallint[])) AS mine CROSS JOIN LATERAL (
      SELECT event.* FROM (
        SELECT message_type, coalesce((
          SELECT floor.sequence FROM unnest($4::smallint[], $5::text[], $6::bigint[]) AS floor (partition, message_type, sequence)
          WHERE floor.partition = mine.partition AND floor.message_type = open.message_type), 0) AS floor
        FROM unnest($1::text[]) AS open (message_type)
        WHERE message_type <> ALL (ARRAY(SELECT message_type FROM task.outbox_pauses))) AS wanted CROSS JOIN LATERAL (
        SELECT ctid AS place, xmax <> 0 AS touched, ${EVENT_COLUMNS}
        FROM task.outbox AS event
        WHERE partition = mine.partition AND parked_at IS NULL AND ${BEHIND_FLOOR}
          AND (cardinality($3::text[]) = 0 OR facility_id || ' ' || message_type <> ALL ($3::text[]))
          AND NOT coalesce(${HAS_REFUSED_BEFORE}, false)
        ORDER BY message_type, sequence
        LIMIT $2) AS event
      ORDER BY event.sequence
      LIMIT $2) AS batch`);

// Reads the first event of the first facility after a given one.
const firstAfter = (facility: string): string => `
            SELECT facility_id, sequence FROM task.outbox AS event
            WHERE partition = mine.partition AND parked_at IS NULL AND (message_type, facility_id) > (open.message_type, ${facility})
              AND message_type <= open.message_type
            ORDER BY message_type, facility_id, sequence LIMIT 1`;

// Reads the next $2 facilities with events that may be published now, and for each of their types its share
// of $2 events. Goes from facility to facility by `outbox_turns`, the only index with this order (see
// BEHIND_FLOOR), so it reads only those facilities and their shares, however much waits. All types of one
// facility are read together, so that the next turn can begin after it.
export const SELECT_TURNS = readUnlocked(`
    SELECT event.* FROM (
      SELECT turn.* FROM unnest($4::smallint[], $5::bigint[]) AS turn (partition, after)
      WHERE turn.partition = ANY (current_setting('task.partitions')::smallint[])) AS mine CROSS JOIN LATERAL (
      SELECT chain.*, count(*) OVER () AS chains FROM (
        SELECT chain.* FROM unnest($1::text[]) AS open (message_type) CROSS JOIN LATERAL (
          WITH RECURSIVE head AS (
            (${firstAfter('mine.after')})
            UNION ALL
            SELECT next.* FROM head CROSS JOIN LATERAL (${firstAfter('head.facility_id')}) AS next
          )
          SELECT event.* FROM (
            SELECT mine.partition, open.message_type, facility_id, sequence FROM head) AS event
          WHERE (cardinality($3::text[]) = 0 OR facility_id || ' ' || message_type <> ALL ($3::text[]))
            AND NOT coalesce(${HAS_REFUSED_BEFORE}, false)
          LIMIT $2) AS chain
        WHERE open.message_type <> ALL (ARRAY(SELECT message_type FROM task.outbox_pauses))
        ORDER BY facility_id FETCH FIRST $2 ROWS WITH TIES) AS chain) AS chain CROSS JOIN LATERAL (
      SELECT ctid AS place, xmax <> 0 AS touched, ${EVENT_COLUMNS}
      FROM task.outbox AS event
      WHERE partition = mine.partition AND parked_at IS NULL
        AND (message_type, facility_id, sequence) >= (chain.message_type, chain.facility_id, chain.sequence)
        AND (message_type, facility_id) <= (chain.message_type, chain.facility_id)
      ORDER BY message_type, facility_id, sequence
      LIMIT ceil($2::float8 / chain.chains)::bigint) AS event`);
