import { CommandError } from '@platform/service-defaults';
import type { WriteText } from '@platform/service-defaults';
import type { AuditTrail } from '../settings/write-request';
import type { AdminCommand } from './command-line';
import { summaryText } from './summary-text';
import type { Summary, TransferObserver, TransferService } from './transfer.service';

/** How `restore` reports to the operator and asks for confirmation. */
export interface RestoreDialogue {
  readonly write: WriteText;
  readonly observer: TransferObserver;
  /** Asks the operator to confirm. Null if standard input is not a terminal. */
  readonly ask: ((question: string) => Promise<boolean>) | null;
}

/**
 * Shows the planned changes, asks for confirmation, and restores the subsystem. The checks keep a wrong
 * instant or a misspelt name from deleting a whole subsystem.
 *
 * @param trail null for a dry run
 * @throws {CommandError} if the subsystem had no setting at that instant (unless empty is allowed), or the
 *   operator did not confirm
 */
export async function restore(
  transfer: TransferService,
  command: AdminCommand,
  trail: AuditTrail | null,
  { write, observer, ask }: RestoreDialogue,
): Promise<Summary> {
  const { at, isAgreed, mayEmpty } = command;
  const subsystem = command.subsystems[0]!;
  if (!mayEmpty && !(await transfer.existedAt(subsystem, at)))
    throw new CommandError(
      `there was no setting of ${JSON.stringify(subsystem)} at ${at.toISOString()}: check the name and the instant, or pass --allow-empty to delete all of its settings`,
    );
  const planned = await transfer.restore(subsystem, at, null, observer);
  if (trail === null) return planned;
  await write(`${summaryText({ ...command, isDryRun: true }, planned)}\n`);
  if (planned.different + planned.extra === 0) return planned;
  if (!isAgreed) {
    if (ask === null)
      throw new CommandError('nothing was changed: pass --yes, because there is no terminal to confirm at');
    if (!(await ask('Restore? [y/N] '))) throw new CommandError('nothing was changed');
  }
  return transfer.restore(subsystem, at, trail, { ...observer, differs: () => undefined });
}
