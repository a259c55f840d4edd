import { CommandError } from '@platform/service-defaults';
import type { WriteText } from '@platform/service-defaults';
import type { AuditTrail } from '../settings/write-request';
import type { AdminCommand } from './command-line';
import { summaryText } from './summary-text';
import type { Summary, TransferObserver, TransferService } from './transfer.service';

/** What a restoration is shown with, and who is asked. */
export interface RestoreDialogue {
  readonly write: WriteText;
  readonly observer: TransferObserver;
  /** Asks the operator; null where there is nobody to ask. */
  readonly ask: ((question: string) => Promise<boolean>) | null;
}

/** Shows what a restoration will do, asks, and does it. A wrong instant or name must not delete a subsystem.
 *  @param trail null: only shows it
 *  @throws {CommandError} when nothing of that name was there at that instant, or nobody has agreed */
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
      `there was no setting of ${JSON.stringify(subsystem)} at ${at.toISOString()}: look at name and instant, or pass --allow-empty to delete all that it has now`,
    );
  const planned = await transfer.restore(subsystem, at, null, observer);
  if (trail === null) return planned;
  await write(`${summaryText({ ...command, isDryRun: true }, planned)}\n`);
  if (planned.different + planned.extra === 0) return planned;
  if (!isAgreed) {
    if (ask === null)
      throw new CommandError('nothing was changed: pass --yes, because there is no terminal to ask at');
    if (!(await ask('Restore? [y/N] '))) throw new CommandError('nothing was changed');
  }
  return transfer.restore(subsystem, at, trail, { ...observer, differs: () => undefined });
}
