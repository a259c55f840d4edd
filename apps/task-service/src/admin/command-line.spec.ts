import { CommanderError } from 'commander';
import { adminProgram } from './command-line';
import type { AdminCommand } from './command-line';

const ID = '6f1c1d0a-3d5e-4a55-9d3a-0b6f1d7c2e11';

/** What is carried out for the arguments, or the text and exit code of what is refused or explained. */
async function understand(
  args: string[],
): Promise<{ command?: AdminCommand; text: string; exitCode?: number }> {
  let command: AdminCommand | undefined;
  let text = '';
  const write = (part: string) => (text += part);
  const run = (understood: AdminCommand): Promise<void> => {
    command = understood;
    return Promise.resolve();
  };
  try {
    await adminProgram(run, { write, complain: write }).parseAsync(args, { from: 'user' });
    return { ...(command && { command }), text };
  } catch (error) {
    if (error instanceof CommanderError) return { text, exitCode: error.exitCode };
    throw error;
  }
}

describe('the operator’s command line', () => {
  it('lists all of a subject, one hundred at most, unless told otherwise', async () => {
    expect((await understand(['outbox', 'list'])).command).toMatchObject({
      subject: 'outbox',
      action: 'list',
      limit: 100,
      isJson: false,
      ids: null,
      facilityId: null,
      isSkipped: false,
    });
    const args = ['outbox', 'list', '--facility', '501', '--limit', '7', '--json'];
    expect((await understand(args)).command).toMatchObject({ limit: 7, isJson: true, facilityId: 501 });
  });

  it('understands a queue with and without the suffix under which it is seen', async () => {
    for (const suffix of ['', '_error', '_skipped']) {
      const args = ['errors', 'list', '--queue', `task-service.schedule-created${suffix}`];
      expect((await understand(args)).command).toMatchObject({ queues: ['task-service.schedule-created'] });
    }
  });

  it.each([
    ['an unknown subject', ['inbox', 'list'], "unknown command 'inbox'"],
    ['no action', ['outbox'], 'list [options]'],
    ['an unknown option', ['outbox', 'list', '--colour'], '--colour'],
    ['an option of the other subject', ['outbox', 'list', '--queue', 'x'], "unknown option '--queue'"],
    ['an option of another action', ['outbox', 'list', '--all'], "unknown option '--all'"],
    [
      'an unknown queue',
      ['errors', 'list', '--queue', 'x'],
      'There is no such queue. Choose from task-service.',
    ],
    ['a limit that is none', ['outbox', 'list', '--limit', '0'], 'a whole number from 1 to 10000'],
    ['a facility that is none', ['outbox', 'list', '--facility', '1e3'], 'a whole number from 1 to'],
    ['a list of one message', ['outbox', 'list', ID], "too many arguments for 'list'"],
    ['show without an id', ['errors', 'show'], "missing required argument 'message-id'"],
    ['show of two messages', ['errors', 'show', ID, ID], "too many arguments for 'show'"],
    ['a replay of nothing in particular', ['errors', 'replay'], 'message ids or --all'],
    ['a replay of one and all', ['errors', 'replay', ID, '--all'], 'message ids or --all'],
    ['discarding without --yes', ['outbox', 'discard', ID], "required option '--yes'"],
  ])('refuses %s and says why', async (_what, args, text) => {
    expect(await understand(args)).toEqual({ text: expect.stringContaining(text), exitCode: 1 });
  });

  it('explains itself, and every command on its own', async () => {
    expect(await understand(['--help'])).toEqual({ text: expect.stringContaining('outbox'), exitCode: 0 });
    for (const subject of ['outbox', 'errors'])
      for (const action of ['list', 'show', 'replay', 'discard'])
        expect(await understand([subject, action, '--help'])).toEqual({
          text: expect.stringMatching(new RegExp(`^Usage: task:admin ${subject} ${action} `)),
          exitCode: 0,
        });
  });
});
