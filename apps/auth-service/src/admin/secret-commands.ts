import type { Command } from 'commander';
import { SEALED_COLUMNS, SealedSecretsRepository } from '../keys/sealed-secrets.repository';
import type { SealedKind } from '../keys/sealed-secrets.repository';
import { SecretBoxError } from '../keys/secret-box';
import type { SecretBox } from '../keys/secret-box';
import { RefusedError, countUpTo } from './command';
import type { CommandContext, RunCommand } from './command';

const DEFAULT_BATCH = 500;
const MAX_BATCH = 10_000;

/** What became of the sealed secrets of one kind. */
interface Moved {
  moved: number;
  /** Sealed with a key that is not configured, or damaged. */
  unreadable: string[];
}

/** Adds the commands on stored secrets and the keys that seal them. */
export function addSecretCommands(program: Command, run: RunCommand): void {
  program
    .command('secrets')
    .description('Stored secrets, sealed with SECRET_ENCRYPTION_KEYS.')
    .command('re-encrypt')
    .summary('Seal every stored secret with the first key')
    .description(
      'Seal every stored secret with the first of SECRET_ENCRYPTION_KEYS, in batches, while the service runs. Every replica must know that ' +
        'key. Repeat it after an interruption; afterwards the other keys are needed no more.',
    )
    .option('--batch <count>', 'secrets in one transaction', countUpTo(MAX_BATCH), DEFAULT_BATCH)
    .action(({ batch }: { batch: number }) =>
      run(async (context) => {
        const moved: Partial<Record<SealedKind, number>> = {};
        const unreadable: string[] = [];
        for (const kind of Object.keys(SEALED_COLUMNS) as SealedKind[]) {
          const result = await moveAll(kind, context, batch);
          moved[kind] = result.moved;
          unreadable.push(...result.unreadable);
        }
        if (unreadable.length > 0) throw new RefusedError(cannotOpen(unreadable));
        const text = Object.entries(moved).map(([kind, count]) => `Sealed anew: ${count} ${kind}.`);
        return { json: moved, text: text.join('\n') };
      }),
    );
}

async function moveAll(
  kind: SealedKind,
  { dataSource, secretBox, progress }: CommandContext,
  batch: number,
): Promise<Moved> {
  const repository = new SealedSecretsRepository(dataSource);
  const box = secretBox();
  const total = await repository.count(kind, box.currentPrefix);
  const result: Moved = { moved: 0, unreadable: [] };
  for (let after = '(0,0)'; ;) {
    const secrets = await repository.find(kind, box.currentPrefix, after, batch);
    if (secrets.length === 0) return result;
    after = secrets.at(-1)!.ctid;
    const readable = secrets.flatMap((secret) => {
      const resealed = reseal(box, secret.purpose, secret.sealed);
      if (resealed === null) result.unreadable.push(secret.purpose);
      return resealed === null ? [] : [{ ...secret, resealed }];
    });
    result.moved += await repository.replace(kind, readable);
    progress(`${kind}: ${result.moved} of ${total}`);
  }
}

/** Null for a secret that no key opens. */
function reseal(box: SecretBox, purpose: string, sealed: Buffer): Buffer | null {
  try {
    return box.seal(purpose, box.open(purpose, sealed));
  } catch (error) {
    if (error instanceof SecretBoxError) return null;
    throw error;
  }
}

function cannotOpen(purposes: readonly string[]): string {
  const [some, more] = [purposes.slice(0, 10), purposes.length - 10];
  const names = `${some.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  return `everything else is sealed anew, but no configured key opens ${names}: add the key that sealed them, and repeat`;
}
