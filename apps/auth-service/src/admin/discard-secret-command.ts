import type { Command } from 'commander';
import { applicationSecretPurpose } from '../applications/application';
import { ApplicationsRepository } from '../applications/applications.repository';
import { RefusedError, countUpTo } from './command';
import type { RunCommand } from './command';

const MAX_VERSION = 1_000_000;

/** Adds the command that removes a secret that no key can open. */
export function addDiscardSecret(group: Command, run: RunCommand): void {
  group
    .command('discard-secret')
    .summary('Remove a secret that no configured key opens')
    .description(
      'Remove one version of an application’s secret that no key of SECRET_ENCRYPTION_KEYS opens: it no longer ' +
        'proves anything. The log of the service names it. A secret that can be opened is refused: see expire-secret.',
    )
    .argument('<application-key>', 'the key that the application sends')
    .argument('<version>', 'the version that the log and applications list show', countUpTo(MAX_VERSION))
    .action((applicationKey: string, version: number) =>
      run(async ({ dataSource, secretBox }) => {
        const box = secretBox();
        const purpose = applicationSecretPurpose(applicationKey);
        await new ApplicationsRepository(dataSource).removeSecret(applicationKey, version, (sealed) => {
          if (sealed === null)
            throw new RefusedError(`${applicationKey} has no secret of version ${String(version)}`);
          if (box.tryOpen(purpose, sealed) !== null)
            throw new RefusedError(
              `version ${String(version)} of the secret of ${applicationKey} can be opened: end it with applications expire-secret`,
            );
        });
        return {
          json: { applicationKey, version },
          text: `Version ${String(version)} of the secret of ${applicationKey} is removed.`,
        };
      }),
    );
}
