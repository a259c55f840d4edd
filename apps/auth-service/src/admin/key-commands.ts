import type { LockedKey } from '../keys/change-signing-key.query';
import { changeSigningKey } from '../keys/change-signing-key.query';
import { insertSigningKey } from '../keys/insert-signing-key.query';
import type { SigningKeyChange } from '../keys/key-lifecycle';
import { PUBLICATION_SECONDS, RETIREMENT_SECONDS, keyChangeRefusal } from '../keys/key-lifecycle';
import { listSigningKeys } from '../keys/list-signing-keys.query';
import type { AsymmetricAlgorithm } from '../keys/signing-key-pair';
import { generateSigningKey } from '../keys/signing-key-pair';
import { columns } from './columns';
import type { Command, CommandGroup, CommandOption, CommandResult } from './command';
import { RefusedError, UsageError } from './command';
import { hasFlag, optionText } from './option-values';

const KID = { name: 'kid', meaning: 'the key id that keys list shows' };
const FORCE: CommandOption = { name: 'force', meaning: 'although tokens may be refused for a while' };

const list: Command = {
  name: 'list',
  summary: 'List the asymmetric signing keys',
  positionals: [],
  options: [],
  prepare:
    () =>
    async ({ dataSource }) => {
      const keys = await listSigningKeys(dataSource);
      const rows = keys.map((key) => [
        key.kid,
        key.algorithm,
        key.state,
        key.createdAt.toISOString(),
        key.stateChangedAt.toISOString(),
      ]);
      return {
        json: keys,
        text: columns([['KID', 'ALGORITHM', 'STATE', 'CREATED', 'IN STATE SINCE'], ...rows]),
      };
    },
};

const generate: Command = {
  name: 'generate',
  summary: 'Generate the next key and publish it; it does not sign yet',
  positionals: [],
  options: [{ name: 'algorithm', value: 'ES256|RS256', meaning: 'ES256 unless given' }],
  prepare: (input) => {
    const algorithm = parseAlgorithm(optionText(input, 'algorithm') ?? 'ES256');
    return async ({ dataSource, encryptionKey }) => {
      const key = generateSigningKey(algorithm, encryptionKey());
      if (!(await insertSigningKey(dataSource, key, 'next')))
        throw new RefusedError(`${algorithm} has a next key already: activate or remove it first`);
      return {
        json: { kid: key.kid, algorithm, state: 'next' },
        text: `Generated ${key.kid} (${algorithm}). Activate it after ${PUBLICATION_SECONDS} s, when every validator knows it.`,
      };
    };
  },
};

function change(
  name: SigningKeyChange,
  description: Pick<Command, 'summary' | 'notes'>,
  done: string,
): Command {
  return {
    name,
    ...description,
    positionals: [KID],
    options: [FORCE],
    prepare: (input) => async (context) => {
      const [kid = ''] = input.positionals;
      const decide = (key: LockedKey | null): LockedKey => permit(kid, key, name, hasFlag(input, 'force'));
      const { algorithm } = await changeSigningKey(context.dataSource, kid, name, decide);
      return changed(kid, algorithm, NEW_STATE[name], done);
    },
  };
}

const NEW_STATE = { activate: 'active', retire: 'retired', remove: 'removed' } as const;

function changed(kid: string, algorithm: string, state: string, done: string): CommandResult {
  return { json: { kid, algorithm, state }, text: `${kid} is ${state}. ${done}` };
}

function permit(kid: string, key: LockedKey | null, name: SigningKeyChange, force: boolean): LockedKey {
  if (key === null) throw new RefusedError(`there is no key "${kid}"`);
  const refusal = keyChangeRefusal(key, name, force);
  if (refusal !== null) throw new RefusedError(refusal);
  return key;
}

function parseAlgorithm(text: string): AsymmetricAlgorithm {
  const algorithm = text.toUpperCase();
  if (algorithm === 'ES256' || algorithm === 'RS256') return algorithm;
  throw new UsageError(`--algorithm must be ES256 or RS256, not "${text}"`);
}

/** Asymmetric signing keys. HMAC keys live in the services' configuration. */
export const KEY_COMMANDS: CommandGroup = {
  name: 'keys',
  summary: 'Asymmetric signing keys: next → active → retired → removed.',
  commands: [
    list,
    generate,
    change(
      'activate',
      {
        summary: 'Let the next key sign; the active key of its algorithm retires',
        notes: `Refused in the first ${PUBLICATION_SECONDS} s after the key was generated, unless forced.`,
      },
      'Every replica signs with it within a minute.',
    ),
    change(
      'retire',
      {
        summary: 'Withdraw the active key without a successor',
        notes:
          'Tokens signed with it stay valid until they expire. Replicas that sign with its algorithm generate a new key within a minute.',
      },
      'Tokens signed with it stay valid until they expire.',
    ),
    change(
      'remove',
      {
        summary: 'Stop accepting a key and destroy its private part',
        notes: `Refused in the first ${RETIREMENT_SECONDS / 3_600} h after the key retired, while its tokens may be valid, unless forced.`,
      },
      'Tokens signed with it are refused within a minute.',
    ),
  ],
};
