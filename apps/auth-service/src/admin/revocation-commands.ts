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
import type { RevocationDomain, RevocationKey } from '../revocations/revocation';
import { RevocationsRepository } from '../revocations/revocations.repository';
import { LIMIT, RefusedError, columns, parseInstant, printableUpTo } from './command';
import type { CommandContext, RunCommand } from './command';
import { isKnown } from './known-users';
import { SessionsRepository, sessionOwner } from '../sessions/sessions.repository';

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

const FORCE =
  'even for an unknown (e.g. deleted) user, session or application, or a token whose jti is not a UUID (of a legacy issuer); skips the identity stores';

interface SetOptions {
  by: string;
  force?: boolean;
}

function addSet(group: Command, run: RunCommand): void {
  group
    .command('set')
    .summary('Revoke tokens: of a person, user, subject, application or session, or one token, from now on')
    .description(
      'Revoke the tokens of a person, user, subject, application or session, or one token, from now on. Every service refuses the tokens within two seconds. ' +
        'Revoking a refresh token’s id ends its whole session.',
    )
    .argument('<domain>', DOMAIN_CHOICE, parseDomain)
    .argument('<identifier>', 'person id, user id, or the claim’s value')
    .option('--by <name>', 'who revokes, for the record', printableUpTo(255), 'administrator')
    .option('--force', FORCE)
    .action((domain: RevocationDomain, identifier: string, { by: subject, force = false }: SetOptions) => {
      const canonical = canonicalIdentifier(domain, identifier);
      if (!isRevocationIdentifier(domain, canonical))
        throw new InvalidArgumentError(`"${identifier}" cannot be an identifier of ${domain}`);
      return run(async (context) => {
        const { dataSource } = context;
        if (!force) await assertKnown(context, { domain, identifier: canonical });
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

/**
 * Refuses an unknown identifier. A misspelt one would be revoked without effect, while the intended tokens
 * stay valid.
 * @throws {RefusedError}
 */
async function assertKnown(context: CommandContext, { domain, identifier }: RevocationKey): Promise<void> {
  const { dataSource } = context;
  switch (domain) {
    case 'jti':
      // Every token of this service has a UUID as `jti`.
      if (isUuid(identifier)) return;
      throw new RefusedError(
        `"${identifier}" is no token of this service, whose jti is a UUID: pass --force to revoke one of a legacy issuer`,
      );
    case 'client_id':
      return assertApplication(dataSource, identifier);
    case 'sid':
      if (await new SessionsRepository(dataSource).isKnown(identifier)) return;
      throw new RefusedError(
        `there is no session ${identifier} that can be refreshed: pass --force to end one without refresh tokens`,
      );
    case 'svc-personid':
    case 'internal-legacy':
    case 'sub':
      if (await isKnown(context, sessionOwner(domain, identifier)!)) return;
  }
  throw new RefusedError(
    `no store knows ${domain} "${identifier}", and it has no live session: pass --force to revoke the tokens of a removed user, of a technician without an account, or of a legacy issuer`,
  );
}

async function assertApplication(dataSource: DataSource, applicationKey: string): Promise<void> {
  if (await dataSource.getRepository(ApplicationEntity).existsBy({ applicationKey })) return;
  throw new RefusedError(
    `there is no application "${applicationKey}": pass --force to revoke the tokens of one that was deleted`,
  );
}

function parseDomain(text: string): RevocationDomain {
  const domain = revocationDomain(text);
  if (domain !== null) return domain;
  throw new InvalidArgumentError(`choose from ${DOMAIN_CHOICE}`);
}
