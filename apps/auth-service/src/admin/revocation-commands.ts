import { InvalidArgumentError } from 'commander';
import type { Command } from 'commander';
import type { DataSource } from 'typeorm';
import { ApplicationEntity } from '../applications/application.entity';
import {
  DEFAULT_MIN_DATE,
  DOMAIN_CHOICE,
  canonicalIdentifier,
  isRevocationIdentifier,
  isUuid,
  revocationDomain,
  toWire,
} from '../revocations/revocation';
import type { RevocationDomain } from '../revocations/revocation';
import { RevocationsRepository } from '../revocations/revocations.repository';
import { LIMIT, RefusedError, columns, parseInstant, printableUpTo } from './command';
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

interface SetOptions {
  by: string;
  force?: boolean;
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
    .option('--by <name>', 'who revokes, for the record', printableUpTo(255), 'administrator')
    .option('--force', 'even of an application that does not exist, as one whose row was deleted')
    .action((domain: RevocationDomain, identifier: string, { by: subject, force = false }: SetOptions) => {
      const canonical = canonicalIdentifier(domain, identifier);
      if (!isRevocationIdentifier(domain, canonical))
        throw new InvalidArgumentError(`"${identifier}" cannot be an identifier of ${domain}`);
      return run(async ({ dataSource }) => {
        // Every token of this service has a UUID: another word revokes nothing.
        if (domain === 'jti' && !isUuid(canonical))
          throw new RefusedError(`"${identifier}" is no token: its claim jti is a UUID`);
        if (domain === 'client_id' && !force) await assertApplication(dataSource, canonical);
        const revocations = new RevocationsRepository(dataSource);
        const interrupts = domain !== 'client_id';
        const token = domain === 'jti' ? await revocations.findIssued(canonical) : null;
        await revocations.put({
          domain,
          identifier: canonical,
          subject,
          clientId: null,
          interrupts,
          expiresAt: token?.expiresAt ?? null,
        });
        const revocation = toWire((await revocations.find(domain, canonical))!);
        return {
          json: revocation,
          text: `Revoked ${domain} ${canonical} as of ${revocation.revocationDate}.`,
        };
      });
    });
}

/** A misspelt key would be revoked without effect, and the tokens of the one that was meant would work on.
 *  @throws {RefusedError} */
async function assertApplication(dataSource: DataSource, applicationKey: string): Promise<void> {
  if (await dataSource.getRepository(ApplicationEntity).existsBy({ applicationKey })) return;
  throw new RefusedError(
    `there is no application "${applicationKey}": pass --force to revoke the tokens of one that was deleted`,
  );
}

function parseDomain(text: string): RevocationDomain {
  const domain = revocationDomain(text);
  if (domain !== null) return domain;
  throw new InvalidArgumentError(`choose of ${DOMAIN_CHOICE}`);
}
