export const SUBJECTS = ['outbox', 'errors'] as const;
export const ACTIONS = ['list', 'show', 'replay', 'discard'] as const;

/** What a command is about: events that could not be published, or messages that could not be processed. */
export type Subject = (typeof SUBJECTS)[number];
export type Action = (typeof ACTIONS)[number];

const GENERAL = `Usage: task:admin <subject> <action> [message id …] [options]

Looks after what the task service has put aside.

Subjects
  outbox    events that the broker refused 20 times: they wait in the service's database
  errors    messages that the service could not process: they wait in the broker's error and skipped queues

Actions
  list      one line each, oldest first
  show      everything about one message, body included
  replay    publish an event again; send a message to its queue again (same message id: applied at most once)
  discard   throw it away for good

Every action explains itself: task:admin outbox replay --help

Exit codes: 0 done, 1 failed or not found, 2 the command was not understood.
Reads DATABASE_URL, RABBITMQ_MAIN_URL and RABBITMQ_SCHEDULING_URL.`;

const FILTERS: Readonly<Record<Subject, string>> = {
  outbox: '  --facility <id>   only events of this facility',
  errors: `  --queue <name>    only messages of this queue, e.g. task-service.schedule-created
  --skipped         the skipped queues (messages of an unknown type) instead of the error queues`,
};

const JSON_OPTION = '  --json            print JSON';

const USAGE: Readonly<Record<Action, string>> = {
  list: '[options]',
  show: '<message id> [options]',
  replay: '<message id> … | --all  [options]',
  discard: '<message id> … | --all  --yes [options]',
};

const OPTIONS: Readonly<Record<Action, readonly string[]>> = {
  list: ['  --limit <n>       at most so many; 100 unless given'],
  show: [],
  replay: ['  --all             all that the filters leave'],
  discard: [
    '  --all             all that the filters leave',
    '  --yes             required: what is discarded cannot be brought back',
  ],
};

const MEANING: Readonly<Record<Subject, Readonly<Record<Action, string>>>> = {
  outbox: {
    list: 'Lists the events that are parked.',
    show: 'Shows a parked event.',
    replay:
      'Gives parked events twenty new attempts. A running replica publishes them within five seconds, before the later events\n' +
      'of their facility that still wait.',
    discard: 'Deletes parked events. Nobody will ever receive them.',
  },
  errors: {
    list: 'Lists the messages in the error queues.',
    show: 'Shows a message of an error queue.',
    replay:
      'Sends messages to their queue again, with the same message id and without attempts behind them. One that fails again\n' +
      'comes back here.',
    discard: 'Deletes messages from an error queue. They will never be processed.',
  },
};

/** The help of a command; the general one without a subject and an action. */
export function helpText(subject?: Subject, action?: Action): string {
  if (subject === undefined || action === undefined) return GENERAL;
  return [
    `Usage: task:admin ${subject} ${action} ${USAGE[action]}`,
    '',
    MEANING[subject][action],
    '',
    'Options',
    FILTERS[subject],
    ...OPTIONS[action],
    JSON_OPTION,
  ].join('\n');
}
