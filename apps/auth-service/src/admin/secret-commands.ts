import type { Command } from 'commander';
import { SEALED_KINDS, SealedSecretsRepository } from '../keys/sealed-secrets.repository';
import type { SealedChoice, SealedKind, SealedSecret } from '../keys/sealed-secrets.repository';
import { SecretBoxError } from '../keys/secret-box';
import type { SecretBox } from '../keys/secret-box';
import { RefusedError, countUpTo } from './command';
import type { CommandContext, CommandResult, RunCommand } from './command';

const DEFAULT_BATCH = 500;
const MAX_BATCH = 10_000;
/**
 * Maximum passes over one kind before the command gives up, because another process keeps sealing with a
 * different key.
 */
const MAX_PASSES = 20;

/** Adds the commands on stored secrets and the keys that seal them. */
export function addSecretCommands(program: Command, run: RunCommand): void {
  program
    .command('secrets')
    .description('Stored secrets, sealed with SECRET_ENCRYPTION_KEYS.')
    .command('re-encrypt')
    .summary('Seal every stored secret with the first key')
    .description(
      'Seal every stored secret with the first of SECRET_ENCRYPTION_KEYS, in batches, while the service runs, until none is left; then open ' +
        'each of them. Every replica must have that key first. Repeat it after an interruption; once it exits with 0, the other ' +
        'keys are no longer needed.',
    )
    .option('--batch <count>', 'secrets in one transaction', countUpTo(MAX_BATCH), DEFAULT_BATCH)
    .option('--check', 'only open every secret with the configured keys, change nothing')
    .action(({ batch, check = false }: { batch: number; check?: boolean }) =>
      run((context) => (check ? checkAll(context, batch) : reEncrypt(context, batch))),
    );
}

async function reEncrypt(context: CommandContext, batch: number): Promise<CommandResult> {
  const moved: Partial<Record<SealedKind, number>> = {};
  for (const kind of SEALED_KINDS) moved[kind] = await moveAll(kind, context, batch);
  const { unreadable } = await openAll(context, batch);
  if (unreadable.length > 0)
    throw new RefusedError(`everything else is sealed anew, but ${cannotOpen(unreadable)}`);
  const text = Object.entries(moved).map(([kind, count]) => `Sealed anew: ${count} ${kind}.`);
  return { json: moved, text: text.join('\n') };
}

async function checkAll(context: CommandContext, batch: number): Promise<CommandResult> {
  const { opened, unreadable } = await openAll(context, batch);
  if (unreadable.length > 0) throw new RefusedError(cannotOpen(unreadable));
  const repository = new SealedSecretsRepository(context.dataSource);
  const exceptPrefix = context.secretBox().currentPrefix;
  let underOthers = 0;
  for (const kind of SEALED_KINDS) underOthers += await repository.count({ kind, exceptPrefix });
  return {
    json: { opened, sealedWithOtherKeys: underOthers },
    text: `Opened: ${String(opened)}. Sealed with another key than the first: ${String(underOthers)}.`,
  };
}

/**
 * Seals every secret of a kind with the first key, in passes. A secret that the service changes after it was
 * read is left to the next pass.
 * @returns the number of secrets sealed
 * @throws {RefusedError} if secrets sealed with another key still appear after the last pass
 */
async function moveAll(kind: SealedKind, context: CommandContext, batch: number): Promise<number> {
  const { dataSource, progress } = context;
  const box = context.secretBox();
  const repository = new SealedSecretsRepository(dataSource);
  const choice = { kind, exceptPrefix: box.currentPrefix };
  const total = await repository.count(choice);
  let moved = 0;
  for (let pass = 1; pass <= MAX_PASSES; pass += 1) {
    for await (const secrets of batchesOf(repository, choice, batch)) {
      const readable = secrets.flatMap((secret) => {
        const secretText = tryOpen(box, secret);
        return secretText === null ? [] : [{ ...secret, resealed: box.seal(secret.purpose, secretText) }];
      });
      moved += await repository.replace(kind, readable);
      progress(`${kind}: ${String(moved)} of ${String(Math.max(total, moved))}`);
    }
    if (!(await hasReadable(repository, choice, box, batch))) return moved;
  }
  throw new RefusedError(
    `something keeps sealing ${kind} with another key: roll the first key out to every replica, and repeat`,
  );
}

/** Whether readable secrets are left to seal: they were added or changed during the pass. */
async function hasReadable(
  repository: SealedSecretsRepository,
  choice: SealedChoice,
  box: SecretBox,
  batch: number,
): Promise<boolean> {
  for await (const secrets of batchesOf(repository, choice, batch))
    if (secrets.some((secret) => tryOpen(box, secret) !== null)) return true;
  return false;
}

/** Opens every secret, whichever key sealed it. */
async function openAll(
  { dataSource, secretBox }: CommandContext,
  batch: number,
): Promise<{ opened: number; unreadable: string[] }> {
  const box = secretBox();
  const repository = new SealedSecretsRepository(dataSource);
  const unreadable: string[] = [];
  let opened = 0;
  for (const kind of SEALED_KINDS) {
    for await (const secrets of batchesOf(repository, { kind, exceptPrefix: null }, batch)) {
      for (const secret of secrets) {
        if (tryOpen(box, secret) === null) unreadable.push(secret.label);
        else opened += 1;
      }
    }
  }
  return { opened, unreadable };
}

async function* batchesOf(
  repository: SealedSecretsRepository,
  choice: SealedChoice,
  limit: number,
): AsyncGenerator<SealedSecret[]> {
  for (let after: string[] | null = null; ;) {
    const secrets: SealedSecret[] = await repository.find(choice, after, limit);
    if (secrets.length === 0) return;
    yield secrets;
    after = secrets.at(-1)!.key;
  }
}

/** Returns null if no key opens the secret. */
function tryOpen(box: SecretBox, { purpose, sealed }: SealedSecret): Buffer | null {
  try {
    return box.open(purpose, sealed);
  } catch (error) {
    if (error instanceof SecretBoxError) return null;
    throw error;
  }
}

function cannotOpen(labels: readonly string[]): string {
  const [some, more] = [labels.slice(0, 10), labels.length - 10];
  const names = `${some.join(', ')}${more > 0 ? ` and ${String(more)} more` : ''}`;
  return `no configured key opens ${names}: add the key that sealed them and repeat, or remove them (applications discard-secret)`;
}
