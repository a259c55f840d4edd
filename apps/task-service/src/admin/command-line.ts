import { parseArgs } from 'node:util';
import { BUS_OF_QUEUE } from '../recurring-generation/queues';
import type { QueueName } from '../recurring-generation/queues';
import { ACTIONS, SUBJECTS, helpText } from './help';
import type { Action, Subject } from './help';

/** A command that was not understood; its text says how it should have been. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Which of the parked messages a command means. */
export interface Selection {
  /** Null means all. */
  readonly ids: ReadonlySet<string> | null;
  readonly facilityId: number | null;
  readonly queues: readonly QueueName[];
  readonly isSkipped: boolean;
}

/** A command that was understood. */
export interface Command {
  readonly kind: 'command';
  readonly subject: Subject;
  readonly action: Action;
  readonly selection: Selection;
  readonly limit: number;
  readonly isJson: boolean;
}

const OPTIONS = {
  help: { type: 'boolean', short: 'h' },
  json: { type: 'boolean' },
  all: { type: 'boolean' },
  yes: { type: 'boolean' },
  skipped: { type: 'boolean' },
  facility: { type: 'string' },
  queue: { type: 'string' },
  limit: { type: 'string' },
} as const;

const ALLOWED: Readonly<Record<Subject | Action, readonly string[]>> = {
  outbox: ['facility'],
  errors: ['queue', 'skipped'],
  list: ['limit'],
  show: [],
  replay: ['all'],
  discard: ['all', 'yes'],
};

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 10_000;

type Values = ReturnType<typeof parse>['values'];

/** Understands the arguments after the program's name. @throws {UsageError} */
export function readCommand(
  args: readonly string[],
): Command | { readonly kind: 'help'; readonly text: string } {
  const { values, positionals } = parse(args);
  const [subjectText, actionText, ...ids] = positionals;
  const subject = SUBJECTS.find((known) => known === subjectText);
  const action = ACTIONS.find((known) => known === actionText);
  if (values.help || positionals.length === 0) return { kind: 'help', text: helpText(subject, action) };
  if (!subject) throw new UsageError(`unknown subject ${String(subjectText)}; one of ${SUBJECTS.join(', ')}`);
  if (!action)
    throw new UsageError(
      `${subject} needs an action; one of ${ACTIONS.join(', ')}, got ${actionText ?? 'none'}`,
    );
  const allowed = ['json', ...ALLOWED[subject], ...ALLOWED[action]];
  const foreign = Object.keys(values).find((name) => !allowed.includes(name));
  if (foreign !== undefined) throw new UsageError(`--${foreign} means nothing to ${subject} ${action}`);
  checkChoice(action, ids, values);
  return {
    kind: 'command',
    subject,
    action,
    selection: {
      ids: ids.length === 0 ? null : new Set(ids),
      facilityId: integer('facility', values.facility, Number.MAX_SAFE_INTEGER) ?? null,
      queues: queuesOf(values.queue),
      isSkipped: values.skipped ?? false,
    },
    limit: integer('limit', values.limit, MAX_LIMIT) ?? DEFAULT_LIMIT,
    isJson: values.json ?? false,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true, strict: true });
  } catch (error) {
    // Node's own text names the option and what is wrong with it.
    const code = (error as { code?: unknown }).code;
    if (typeof code === 'string' && code.startsWith('ERR_PARSE_ARGS'))
      throw new UsageError((error as Error).message, { cause: error });
    throw error;
  }
}

function checkChoice(action: Action, ids: readonly string[], values: Values): void {
  if (action === 'list' && ids.length > 0) throw new UsageError('list takes no message id; show does');
  if (action === 'show' && ids.length !== 1) throw new UsageError('show takes one message id');
  if (action === 'list' || action === 'show') return;
  if (ids.length > 0 === (values.all ?? false)) throw new UsageError(`${action} takes message ids or --all`);
  if (action === 'discard' && !values.yes)
    throw new UsageError('discard deletes for good: add --yes if that is meant');
}

function integer(name: string, text: string | undefined, max: number): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (!/^\d{1,16}$/.test(text) || value < 1 || value > max)
    throw new UsageError(`--${name} is a whole number from 1 to ${String(max)}, got ${text}`);
  return value;
}

function queuesOf(text: string | undefined): QueueName[] {
  const known = Object.keys(BUS_OF_QUEUE) as QueueName[];
  if (text === undefined) return known;
  // An operator copies the name from where it is seen: with its suffix.
  const queue = known.find((name) => name === text.replace(/_(error|skipped)$/, ''));
  if (!queue) throw new UsageError(`unknown queue ${text}; one of ${known.join(', ')}`);
  return [queue];
}
