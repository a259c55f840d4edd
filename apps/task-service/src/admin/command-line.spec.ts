import { CommanderError } from 'commander';
import { adminProgram } from './command-line';
import type { AdminCommand } from './command-line';

const ID = '6f1c1d0a-3d5e-4a55-9d3a-0b6f1d7c2e11';

/**
 * Returns the command that was parsed from the arguments, or the printed text and exit code of a rejection or
 * of help.
 */
async function parse(args: string[]): Promise<{ command?: AdminCommand; text: string; exitCode?: number }> {
  let command: AdminCommand | undefined;
  let text = '';
  const write = (part: string) => (text += part);
  const run = (parsed: AdminCommand): Promise<void> => {
    command = parsed;
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
  it('lists everything of a subject, up to 100 lines by default', async () => {
    expect((await parse(['outbox', 'list'])).command).toMatchObject({
      subject: 'outbox',
      action: 'list',
      limit: 100,
      isJson: false,
      ids: null,
      facilityId: null,
      isSkipped: false,
    });
    const args = ['outbox', 'list', '--facility', '501', '--limit', '7', '--json'];
    expect((await parse(args)).command).toMatchObject({ limit: 7, isJson: true, facilityId: 501 });
  });

  it('accepts a queue name with and without the suffix of its error or skipped queue', async () => {
    for (const suffix of ['', '_error', '_skipped']) {
      const args = ['errors', 'list', '--queue', `task-service.schedule-created${suffix}`];
      expect((await parse(args)).command).toMatchObject({ queues: ['task-service.schedule-created'] });
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
    ['a limit of 0', ['outbox', 'list', '--limit', '0'], 'a whole number from 1 to 10000'],
    [
      'a facility that is not a decimal integer',
      ['outbox', 'list', '--facility', '1e3'],
      'a whole number from 1 to',
    ],
    ['a list of one message', ['outbox', 'list', ID], "too many arguments for 'list'"],
    ['show without an id', ['errors', 'show'], "missing required argument 'message-id'"],
    ['show of two messages', ['errors', 'show', ID, ID], "too many arguments for 'show'"],
    ['a replay with neither ids nor --all', ['errors', 'replay'], 'message ids or --all'],
    ['a replay with both an id and --all', ['errors', 'replay', ID, '--all'], 'message ids or --all'],
    ['discarding without --yes', ['outbox', 'discard', ID], "required option '--yes'"],
  ])('refuses %s and says why', async (_what, args, text) => {
    expect(await parse(args)).toEqual({ text: expect.stringContaining(text), exitCode: 1 });
  });

  it('prints help, also for each command', async () => {
    expect(await parse(['--help'])).toEqual({ text: expect.stringContaining('outbox'), exitCode: 0 });
    for (const subject of ['outbox', 'errors'])
      for (const action of ['list', 'show', 'replay', 'discard'])
        expect(await parse([subject, action, '--help'])).toEqual({
          text: expect.stringMatching(new RegExp(`^Usage: task:admin ${subject} ${action} `)),
          exitCode: 0,
        });
  });
});
