import { findRevocation } from '../revocations/find-revocation.query';
import { listRevocations } from '../revocations/list-revocations.query';
import type { RevocationRow } from '../revocations/list-revocations.query';
import { putRevocation } from '../revocations/put-revocation.query';
import type { Revocation } from '../revocations/revocation';
import {
  DEFAULT_MIN_DATE,
  formatRevocationDate,
  isRevocationIdentifier,
  revocationDomain,
} from '../revocations/revocation';
import { columns } from './columns';
import type { Command, CommandGroup } from './command';
import { UsageError } from './command';
import { optionText, parseCount, parseInstant } from './option-values';

const DEFAULT_LIMIT = '100';
const MAX_LIMIT = 100_000;

const list: Command = {
  name: 'list',
  summary: 'List revocations, oldest first',
  positionals: [],
  options: [
    { name: 'since', value: 'date', meaning: 'only those set after it, e.g. 2026-01-31' },
    { name: 'limit', value: 'number', meaning: `at most so many; ${DEFAULT_LIMIT} unless given` },
  ],
  prepare: (input) => {
    const since = optionText(input, 'since');
    const minDate = since === undefined ? DEFAULT_MIN_DATE : parseInstant(since);
    const limit = parseCount('--limit', optionText(input, 'limit') ?? DEFAULT_LIMIT, MAX_LIMIT);
    return async ({ dataSource }) => {
      const revocations = (await listRevocations(dataSource, minDate, limit)).map(shown);
      const rows = revocations.map((each) => [each.domain, each.identifier, each.revocationDate]);
      return { json: revocations, text: columns([['DOMAIN', 'IDENTIFIER', 'REVOKED AT'], ...rows]) };
    };
  },
};

const set: Command = {
  name: 'set',
  summary: 'Revoke the tokens of a person or user, or one token, from now on',
  positionals: [
    { name: 'domain', meaning: 'svc-personid, internal-legacy or jti (also: token)' },
    { name: 'identifier', meaning: 'person id, user id or token id' },
  ],
  options: [
    { name: 'by', value: 'name', meaning: 'who revokes, for the record; "administrator" unless given' },
  ],
  notes:
    'Every service refuses the tokens within two seconds. Revoking a refresh token’s id ends its whole family.',
  prepare: (input) => {
    const [segment = '', identifier = ''] = input.positionals;
    const domain = revocationDomain(segment);
    if (domain === null)
      throw new UsageError(
        `there is no domain "${segment}": choose of svc-personid, internal-legacy, jti, token`,
      );
    if (!isRevocationIdentifier(domain, identifier))
      throw new UsageError(`"${identifier}" cannot be an identifier of ${domain}`);
    const subject = optionText(input, 'by') ?? 'administrator';
    return async ({ dataSource }) => {
      await putRevocation(dataSource, { domain, identifier }, { subject, clientId: null });
      const row = await findRevocation(dataSource, domain, identifier);
      const revocation = shown(row!);
      return {
        json: revocation,
        text: `Revoked ${domain} ${identifier} as of ${revocation.revocationDate}.`,
      };
    };
  },
};

function shown({ domain, identifier, revocationDate }: RevocationRow): Revocation {
  return { domain, identifier, revocationDate: formatRevocationDate(revocationDate) };
}

/** The revocation registry. */
export const REVOCATION_COMMANDS: CommandGroup = {
  name: 'revocations',
  summary: 'Revocations: tokens that are refused although they have not expired.',
  commands: [list, set],
};
