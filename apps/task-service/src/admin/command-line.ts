import { Command, InvalidArgumentError } from 'commander';
import { BUS_OF_QUEUE } from '../recurring-generation/queues';
import type { QueueName } from '../recurring-generation/queues';

/**
 * Subject of a command: `outbox` is events that could not be published, `errors` is messages that could not
 * be processed.
 */
type Subject = 'outbox' | 'errors';
type Action = 'list' | 'show' | 'replay' | 'discard' | 'skip' | 'move';

/** A parsed command. */
export interface AdminCommand {
  /** `status` and `reconcile` cover everything; their only action is `list`. */
  readonly subject: Subject | 'status' | 'reconcile';
  readonly action: Action;
  /** Null selects all messages. */
  readonly ids: ReadonlySet<string> | null;
  readonly facilityId: number | null;
  readonly queues: readonly QueueName[];
  readonly isSkipped: boolean;
  /** Selects messages that wait for their next attempt, instead of those that were parked. */
  readonly isWaiting: boolean;
  /** Target queue of `move`. */
  readonly to: QueueName | null;
  /** Shows what the command would do, without doing it. */
  readonly isDryRun: boolean;
  readonly limit: number;
  readonly isJson: boolean;
}

interface Options {
  facility?: number;
  queue?: QueueName;
  skipped?: boolean;
  waiting?: boolean;
  to?: QueueName;
  dryRun?: boolean;
  apply?: boolean;
  limit?: number;
  all?: boolean;
  json?: boolean;
}

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 10_000;
const QUEUE_NAMES = Object.keys(BUS_OF_QUEUE) as QueueName[];

const EPILOGUE = `
Every action explains itself: task:admin outbox replay --help

Exit codes: 0 done, 1 failed or not found, 2 the command was not understood.
Reads DATABASE_URL, RABBITMQ_MAIN_URL and RABBITMQ_SCHEDULING_URL.`;

const DESCRIPTIONS: Readonly<Record<Subject, Readonly<Partial<Record<Action, string>>>>> = {
  outbox: {
    list: 'List the events that are parked, one line each, oldest first.',
    show: 'Show everything about a parked event.',
    replay:
      'Give parked events 20 new attempts. A running replica publishes them within 5 s, before the later waiting events of their facility.',
    skip: 'Park waiting events, so that later ones of their facility and type are published. Parked events can be replayed.',
    discard: 'Delete parked events. No consumer will ever receive them.',
  },
  errors: {
    list: 'List the messages in the error queues, one line each, oldest first.',
    show: 'Show everything about a message of an error queue, body included.',
    replay:
      'Send messages to their queue again, with the same message id (applied at most once) and their attempts reset to 0. One that fails again returns to the error queue.',
    move: 'Like replay, but to another queue of the service.',
    discard: 'Delete messages from an error queue. They will never be processed.',
  },
};

/**
 * Builds the parser of the whole command line.
 * @param run carries out the parsed command
 * @param output receives help and error messages. An invalid command line throws a CommanderError once its
 * message is written.
 */
export function adminProgram(
  run: (command: AdminCommand) => Promise<void>,
  output: { readonly write: (text: string) => void; readonly complain: (text: string) => void },
): Command {
  const program = new Command('task:admin')
    .description('Administers what the task service has parked.')
    .configureOutput({ writeOut: output.write, writeErr: output.complain })
    .showHelpAfterError('Try task:admin --help')
    .exitOverride()
    .addHelpText('after', EPILOGUE);
  const outbox = program
    .command('outbox')
    .description('events that the broker refused 20 times: they wait in the service’s database');
  const errors = program
    .command('errors')
    .description(
      'messages that the service could not process: they wait in the broker’s error and skipped queues',
    );
  program
    .command('status')
    .description(
      'Show what waits, since when and why: the outbox, every queue with its consumers, parked messages.',
    )
    .option('--json', 'print JSON')
    .action((options: Options) => run(commandOf('status', 'list', [], options)));
  program
    .command('reconcile')
    .description(
      'Find inconsistencies after a lost message or a restored database: schedules without instances, instances of schedules that are not Active, triggers without business unit, events that no release publishes. The service itself repairs the first two every hour.',
    )
    .option('--apply', 'repair the findings that can be repaired; without it nothing changes. Safe to repeat')
    .option('--json', 'print JSON')
    .action((options: Options) => run(commandOf('reconcile', 'list', [], options)));
  addOutboxActions(outbox, run);
  addErrorActions(errors, run);
  return program;
}

function addOutboxActions(outbox: Command, run: (command: AdminCommand) => Promise<void>): void {
  for (const action of ['list', 'show', 'replay', 'skip', 'discard'] as const) {
    const command = addAction(outbox, 'outbox', action, run).option(
      '--facility <id>',
      'only events of this facility',
      integerUpTo(Number.MAX_SAFE_INTEGER),
    );
    if (action === 'list') command.option('--waiting', 'waiting events instead of parked ones');
  }
}

function addErrorActions(errors: Command, run: (command: AdminCommand) => Promise<void>): void {
  for (const action of ['list', 'show', 'replay', 'move', 'discard'] as const) {
    const command = addAction(errors, 'errors', action, run)
      .option('--queue <name>', 'only messages of this queue, e.g. task-service.schedule-created', queueName)
      .option('--skipped', 'the skipped queues (messages of an unknown type) instead of the error queues')
      .option('--waiting', 'messages that wait for their next attempt instead; replay retries them at once');
    if (action === 'move') command.requiredOption('--to <name>', 'the target queue', queueName);
  }
}

function commandOf(
  subject: AdminCommand['subject'],
  action: Action,
  ids: readonly string[],
  options: Options,
): AdminCommand {
  return {
    subject,
    action,
    ids: ids.length === 0 ? null : new Set(ids),
    facilityId: options.facility ?? null,
    queues: options.queue ? [options.queue] : QUEUE_NAMES,
    isSkipped: options.skipped ?? false,
    isWaiting: options.waiting ?? action === 'skip',
    to: options.to ?? null,
    isDryRun: options.dryRun ?? (subject === 'reconcile' && options.apply !== true),
    limit: options.limit ?? DEFAULT_LIMIT,
    isJson: options.json ?? false,
  };
}

function addAction(
  group: Command,
  subject: Subject,
  action: Action,
  run: (command: AdminCommand) => Promise<void>,
): Command {
  const command = group.command(action).description(DESCRIPTIONS[subject][action] ?? '');
  command.option('--json', 'print JSON');
  if (action === 'list')
    command.option('--limit <n>', 'maximum number of lines', integerUpTo(MAX_LIMIT), DEFAULT_LIMIT);
  if (action === 'show') command.argument('<message-id>');
  const takesAll = action !== 'list' && action !== 'show';
  if (takesAll)
    command
      .argument('[message-ids...]')
      .option('--all', 'every message that matches the filters')
      .option('--dry-run', 'show which messages match, and change nothing');
  if (action === 'discard')
    command.requiredOption('--yes', 'required: discarded messages cannot be restored');
  return command.action(async () => {
    const options = command.opts<Options>();
    const ids = command.args;
    if (takesAll && ids.length > 0 === (options.all ?? false))
      command.error(`error: ${action} takes message ids or --all`);
    await run(commandOf(subject, action, ids, options));
  });
}

function integerUpTo(max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : 0;
    if (value >= 1 && value <= max) return value;
    throw new InvalidArgumentError(`It must be a whole number from 1 to ${String(max)}.`);
  };
}

function queueName(text: string): QueueName {
  // An operator copies the name from a list, where it has the suffix of its error or skipped queue.
  const queue = QUEUE_NAMES.find((name) => name === text.replace(/_(error|skipped)$/, ''));
  if (queue) return queue;
  throw new InvalidArgumentError(`There is no such queue. Choose from ${QUEUE_NAMES.join(', ')}.`);
}
