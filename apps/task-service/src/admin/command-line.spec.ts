import { UsageError, readCommand } from './command-line';
import { ACTIONS, SUBJECTS } from './help';

const ID = '6f1c1d0a-3d5e-4a55-9d3a-0b6f1d7c2e11';

describe('the operator’s command line', () => {
  it('lists all of a subject, one hundred at most, unless told otherwise', () => {
    expect(readCommand(['outbox', 'list'])).toMatchObject({
      ...{ subject: 'outbox', action: 'list', limit: 100, isJson: false },
      selection: { ids: null, facilityId: null, isSkipped: false },
    });
    expect(readCommand(['outbox', 'list', '--facility', '501', '--limit', '7', '--json'])).toMatchObject({
      ...{ limit: 7, isJson: true },
      selection: { facilityId: 501 },
    });
  });

  it('understands a queue with and without the suffix under which it is seen', () => {
    for (const suffix of ['', '_error', '_skipped'])
      expect(
        readCommand(['errors', 'list', '--queue', `task-service.schedule-created${suffix}`]),
      ).toMatchObject({ selection: { queues: ['task-service.schedule-created'] } });
  });

  it.each([
    ['an unknown subject', ['inbox', 'list'], 'one of outbox, errors'],
    ['no action', ['outbox'], 'one of list, show, replay, discard'],
    ['an unknown option', ['outbox', 'list', '--colour'], '--colour'],
    ['an option of the other subject', ['outbox', 'list', '--queue', 'x'], '--queue means nothing'],
    ['an option of another action', ['outbox', 'list', '--all'], '--all means nothing'],
    ['an unknown queue', ['errors', 'list', '--queue', 'x'], 'unknown queue x'],
    ['a limit that is none', ['outbox', 'list', '--limit', '0'], '--limit is a whole number'],
    ['a facility that is none', ['outbox', 'list', '--facility', '1e3'], '--facility is a whole number'],
    ['a list of one message', ['outbox', 'list', ID], 'show does'],
    ['show without an id', ['errors', 'show'], 'one message id'],
    ['a replay of nothing in particular', ['errors', 'replay'], 'message ids or --all'],
    ['a replay of one and all', ['errors', 'replay', ID, '--all'], 'message ids or --all'],
    ['discarding without --yes', ['outbox', 'discard', ID], 'add --yes'],
  ])('refuses %s and says why', (_what, args, text) => {
    expect(() => readCommand(args)).toThrow(UsageError);
    expect(() => readCommand(args)).toThrow(text);
  });

  it('explains itself, and every command on its own', () => {
    expect(readCommand([])).toMatchObject({ kind: 'help', text: expect.stringContaining('Subjects') });
    for (const subject of SUBJECTS)
      for (const action of ACTIONS)
        expect(readCommand([subject, action, '--help'])).toMatchObject({
          kind: 'help',
          text: expect.stringMatching(new RegExp(`^Usage: task:admin ${subject} ${action} `)),
        });
  });
});
