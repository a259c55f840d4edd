import type { FailedMessage, QueueState } from '@platform/messaging';
import type { OutboxMessage } from '../outbound/outbox-message.entity';
import type { OutboxStatus } from '../outbound/outbox.repository';

/** One line of output: values by column name, in column order. */
export type OutputRow = Readonly<Record<string, unknown>>;

/** Returns an outbox event as a row of a list. */
export function eventLine(event: OutboxMessage): OutputRow {
  const { messageId, facilityId, messageType, attempts, parkedAt, nextAttemptAt, lastError } = event;
  const when = parkedAt
    ? { parkedAt: parkedAt.toISOString() }
    : { nextAttemptAt: nextAttemptAt.toISOString() };
  return { messageId, facilityId, messageType, attempts, ...when, lastError };
}

/** Returns the outbox events of one message type as a row of the status. */
export function outboxStatus({ messageType, isParked, messages, since, lastError }: OutboxStatus): OutputRow {
  const why = lastError ?? (isParked ? null : 'not published yet');
  return {
    where: isParked ? 'outbox, parked' : 'outbox',
    what: messageType,
    messages,
    consumers: null,
    since: since.toISOString(),
    why,
  };
}

/** Returns a queue as a row of the status. */
export function queueStatus(
  what: string,
  { messages, consumers, first }: QueueState,
  isConsumed: boolean,
): OutputRow {
  const error = first === null ? null : (errorText(first) ?? first.reason);
  const why = isConsumed && consumers === 0 ? 'nobody consumes it' : error;
  return {
    where: 'queue',
    what,
    messages,
    consumers: isConsumed ? consumers : null,
    since: first?.parkedAt ?? null,
    why,
  };
}

export function eventDetails(event: OutboxMessage): OutputRow {
  const { createdAt, traceHeaders, message } = event;
  return { ...eventLine(event), createdAt: createdAt.toISOString(), traceHeaders, message };
}

/** Returns a queue's message as a row of a list. */
export function messageLine(message: FailedMessage): OutputRow {
  const { id, queue, type, reason, parkedAt } = message;
  return { messageId: id, queue, type, reason, parkedAt, error: errorText(message) };
}

function errorText({ errorType, errorMessage }: FailedMessage): string | null {
  return errorType === null ? null : `${errorType}: ${errorMessage ?? ''}`;
}

export function messageDetails(message: FailedMessage): OutputRow {
  const { attempts, headers, body } = message;
  return { ...messageLine(message), attempts, headers, body: parsed(body) };
}

/** Formats rows as a table with aligned columns. */
export function tableText(rows: readonly OutputRow[]): string {
  const [first] = rows;
  if (!first) return 'nothing is parked';
  const names = Object.keys(first);
  const lines = [names, ...rows.map((row) => names.map((name) => cell(row[name])))];
  const widths = names.map((_name, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map((line) =>
      line
        .map((text, column) => text.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Formats one message, a line per field, with indented JSON. */
export function detailsText(row: OutputRow): string {
  return Object.entries(row)
    .map(([name, value]) => {
      const text = typeof value === 'object' && value !== null ? JSON.stringify(value, null, 2) : cell(value);
      return `${name}: ${text}`;
    })
    .join('\n');
}

/** Formats one value. Replaces control characters, so that a message cannot control the terminal. */
function cell(value: unknown): string {
  if (value === null || value === undefined) return '-';
  return (typeof value === 'string' ? value : JSON.stringify(value)).replace(/\p{Cc}/gu, ' ');
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body) as unknown;
  } catch (error) {
    if (error instanceof SyntaxError) return body;
    throw error;
  }
}
