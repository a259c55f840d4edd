import { InvalidArgumentError } from 'commander';
import type { Command } from 'commander';
import {
  PUBLICATION_SECONDS,
  RETIREMENT_SECONDS,
  generateSigningKey,
  keyChangeRefusal,
} from '../keys/signing-key';
import type { AsymmetricAlgorithm, SigningKeyChange } from '../keys/signing-key';
import { SigningKeysRepository } from '../keys/signing-keys.repository';
import type { LockedKey } from '../keys/signing-keys.repository';
import { RefusedError, columns } from './command';
import type { RunCommand } from './command';

/** A state change of a key, as a command. */
interface ChangeCommand {
  summary: string;
  /** Notes for the administrator before using it. */
  notes: string;
  newState: string;
  /** The consequence of the change. */
  effect: string;
}

const CHANGES: Readonly<Record<SigningKeyChange, ChangeCommand>> = {
  activate: {
    summary: 'Let the next key sign; the active key of its algorithm retires',
    notes: `Refused in the first ${PUBLICATION_SECONDS} s after the key was generated, unless forced.`,
    newState: 'active',
    effect: 'Every replica signs with it within a minute.',
  },
  retire: {
    summary: 'Withdraw the active key without a successor',
    notes:
      'Tokens signed with it stay valid until they expire. Replicas that sign with its algorithm generate a new key within a minute.',
    newState: 'retired',
    effect: 'Tokens signed with it stay valid until they expire.',
  },
  remove: {
    summary: 'Stop accepting a key and destroy its private part',
    notes: `Refused in the first ${RETIREMENT_SECONDS / 3_600} h after the key retired, while its tokens may be valid, unless forced.`,
    newState: 'removed',
    effect: 'Tokens signed with it are refused within a minute.',
  },
};

/** Adds the commands on asymmetric signing keys. HMAC keys are part of the services' configuration. */
export function addKeyCommands(program: Command, run: RunCommand): void {
  const group = program
    .command('keys')
    .description('Asymmetric signing keys: next → active → retired → removed.');
  addList(group, run);
  addGenerate(group, run);
  for (const change of ['activate', 'retire', 'remove'] as const) addChange(group, run, change);
}

function addList(group: Command, run: RunCommand): void {
  group
    .command('list')
    .description('List the asymmetric signing keys')
    .action(() =>
      run(async ({ dataSource }) => {
        const keys = await new SigningKeysRepository(dataSource).list();
        const rows = keys.map((key) => [
          key.kid,
          key.algorithm,
          key.state,
          key.createdAt.toISOString(),
          key.stateChangedAt.toISOString(),
        ]);
        const head = ['KID', 'ALGORITHM', 'STATE', 'CREATED', 'IN STATE SINCE'];
        return { json: keys, text: columns([head, ...rows]) };
      }),
    );
}

function addGenerate(group: Command, run: RunCommand): void {
  group
    .command('generate')
    .description('Generate the next key and publish it; it does not sign yet')
    .option('--algorithm <ES256|RS256>', 'ES256 unless given', parseAlgorithm, 'ES256')
    .action(({ algorithm }: { algorithm: AsymmetricAlgorithm }) =>
      run(async ({ dataSource, secretBox }) => {
        const key = generateSigningKey(algorithm, secretBox());
        if (!(await new SigningKeysRepository(dataSource).insert(key, 'next')))
          throw new RefusedError(`${algorithm} has a next key already: activate or remove it first`);
        return {
          json: { kid: key.kid, algorithm, state: 'next' },
          text: `Generated ${key.kid} (${algorithm}). Activate it after ${PUBLICATION_SECONDS} s, when every validator knows it.`,
        };
      }),
    );
}

function parseAlgorithm(text: string): AsymmetricAlgorithm {
  const algorithm = text.toUpperCase();
  if (algorithm === 'ES256' || algorithm === 'RS256') return algorithm;
  throw new InvalidArgumentError('--algorithm must be ES256 or RS256');
}

function addChange(group: Command, run: RunCommand, change: SigningKeyChange): void {
  const { summary, notes, newState, effect } = CHANGES[change];
  group
    .command(change)
    .summary(summary)
    .description(`${summary}. ${notes}`)
    .argument('<kid>', 'the key id that keys list shows')
    .option('--force', 'even if tokens may be refused for a while')
    .action((kid: string, { force = false }: { force?: boolean }) =>
      run(async ({ dataSource }) => {
        const { algorithm } = await new SigningKeysRepository(dataSource).change(kid, change, (key) =>
          permit(kid, key, change, force),
        );
        return { json: { kid, algorithm, state: newState }, text: `${kid} is ${newState}. ${effect}` };
      }),
    );
}

function permit(kid: string, key: LockedKey | null, change: SigningKeyChange, force: boolean): LockedKey {
  if (key === null) throw new RefusedError(`there is no key "${kid}"`);
  const refusal = keyChangeRefusal(key, change, force);
  if (refusal !== null) throw new RefusedError(refusal);
  return key;
}
