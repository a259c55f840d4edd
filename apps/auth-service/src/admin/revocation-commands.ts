import { InvalidArgumentError } from 'commander';
import type { Command } from 'commander';
import {
  DEFAULT_MIN_DATE,
  DOMAIN_CHOICE,
  isRevocationIdentifier,
  revocationDomain,
  toWire,
} from '../revocations/revocation';
import type { RevocationDomain } from '../revocations/revocation';
import { RevocationsRepository } from '../revocations/revocations.repository';
import { LIMIT, columns, parseInstant } from './command';
import type { RunCommand } from './command';

export function addRevocationCommands(program: Command, run: RunCommand): void {
  const group = program
    .command('revocations')
    .description('Revocations: tokens that are refused although they have not expired.');
  addList(group, run);
  addSet(group, run);
}

function addList(group: Command, run: RunCommand): void {
  group
    .command('list')
    .description('List revocations, oldest first')
    .option('--since <date>', 'only those set after it, e.g. 2026-01-31', parseInstant)
    .option(...LIMIT)
    .action(({ since = DEFAULT_MIN_DATE, limit }: { since?: Date; limit: number }) =>
      run(async ({ dataSource }) => {
        const revocations = (await new RevocationsRepository(dataSource).list(since, limit)).map(toWire);
        const rows = revocations.map((each) => [each.domain, each.identifier, each.revocationDate]);
        return { json: revocations, text: columns([['DOMAIN', 'IDENTIFIER', 'REVOKED AT'], ...rows]) };
      }),
    );
}

function addSet(group: Command, run: RunCommand): void {
  group
    .command('set')
    .summary('Revoke tokens: of a person, user, subject, application or session, or one, from now on')
    .description(
      'Revoke the tokens of a person, user, subject, application or session, or one token, from now on. Every service refuses the tokens within two seconds. ' +
        'Revoking a refresh token’s id ends its whole session.',
    )
    .argument('<domain>', DOMAIN_CHOICE, parseDomain)
    .argument('<identifier>', 'person id, user id, or the claim’s value')
    .option('--by <name>', 'who revokes, for the record', 'administrator')
    .action((domain: RevocationDomain, identifier: string, { by: subject }: { by: string }) => {
      if (!isRevocationIdentifier(domain, identifier))
        throw new InvalidArgumentError(`"${identifier}" cannot be an identifier of ${domain}`);
      return run(async ({ dataSource }) => {
        const revocations = new RevocationsRepository(dataSource);
        await revocations.put({ domain, identifier }, { subject, clientId: null });
        const revocation = toWire((await revocations.find(domain, identifier))!);
        return {
          json: revocation,
          text: `Revoked ${domain} ${identifier} as of ${revocation.revocationDate}.`,
        };
      });
    });
}

function parseDomain(text: string): RevocationDomain {
  const domain = revocationDomain(text);
  if (domain !== null) return domain;
  throw new InvalidArgumentError(`choose of ${DOMAIN_CHOICE}`);
}
