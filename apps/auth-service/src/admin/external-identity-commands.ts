import { InvalidArgumentError } from 'commander';
import type { Command } from 'commander';
import { ExternalIdentity } from '../identity/external-identity.entity';
import { LIMIT, RefusedError, columns, countUpTo, printableUpTo } from './command';
import type { RunCommand } from './command';

const MAX_TEXT = 255;
const ISSUER = [
  '<issuer>',
  'the provider, exactly as its ID tokens name it',
  printableUpTo(MAX_TEXT),
] as const;
const SUBJECT = ['<subject>', 'the claim sub of its ID tokens', printableUpTo(MAX_TEXT)] as const;
/** Without checks, so that `remove` also accepts names stored before names were checked. */
const STORED_ISSUER = [ISSUER[0], ISSUER[1]] as const;
const STORED_SUBJECT = [SUBJECT[0], SUBJECT[1]] as const;
const MAX_IDENTIFIER = 999_999_999;

/** Adds the commands on external identities, which map subjects of the identity provider to users. */
export function addExternalIdentityCommands(program: Command, run: RunCommand): void {
  const group = program
    .command('external-identities')
    .description('External identities: who a subject of the identity provider is here.');
  addList(group, run);
  addAdd(group, run);
  addRemove(group, run);
}

function addList(group: Command, run: RunCommand): void {
  group
    .command('list')
    .description('List external identities, by issuer and subject')
    .option('--issuer <issuer>', 'only those of this provider')
    .option(...LIMIT)
    .action(({ issuer, limit }: { issuer?: string; limit: number }) =>
      run(async ({ dataSource }) => {
        const found = await dataSource.getRepository(ExternalIdentity).find({
          where: issuer === undefined ? {} : { issuer },
          order: { issuer: 'ASC', subject: 'ASC' },
          take: limit,
        });
        const rows = found.map((each) => [each.issuer, each.subject, nameOf(each)]);
        return { json: found, text: columns([['ISSUER', 'SUBJECT', 'IS'], ...rows]) };
      }),
    );
}

interface Target {
  person?: number;
  user?: number;
}

function addAdd(group: Command, run: RunCommand): void {
  group
    .command('add')
    .summary('Map a subject to a person or an internal user')
    .description(
      'Map a subject to a person or an internal user, exactly one of the two. A subject that is already mapped is refused.',
    )
    .argument(...ISSUER)
    .argument(...SUBJECT)
    .option('--person <id>', 'the person', countUpTo(MAX_IDENTIFIER))
    .option('--user <id>', 'the internal user', countUpTo(MAX_IDENTIFIER))
    .action((issuer: string, subject: string, { person, user }: Target) => {
      if ((person === undefined) === (user === undefined))
        throw new InvalidArgumentError('name exactly one of --person and --user');
      const identity = { issuer, subject, personId: person ?? null, userId: user ?? null };
      return run(async ({ dataSource }) => {
        const identities = dataSource.getRepository(ExternalIdentity);
        if (await identities.existsBy({ issuer, subject }))
          throw new RefusedError(`${subject} of ${issuer} is mapped already: remove it first`);
        await identities.insert(identity);
        return { json: identity, text: `${subject} of ${issuer} is ${nameOf(identity)}.` };
      });
    });
}

function addRemove(group: Command, run: RunCommand): void {
  group
    .command('remove')
    .description('Remove a mapping; tokens issued with it stay valid')
    .argument(...STORED_ISSUER)
    .argument(...STORED_SUBJECT)
    .action((issuer: string, subject: string) =>
      run(async ({ dataSource }) => {
        const { affected } = await dataSource.getRepository(ExternalIdentity).delete({ issuer, subject });
        if (affected !== 1) throw new RefusedError(`${subject} of ${issuer} is not mapped`);
        return { json: { issuer, subject }, text: `${subject} of ${issuer} is no longer mapped.` };
      }),
    );
}

function nameOf({ personId, userId }: Pick<ExternalIdentity, 'personId' | 'userId'>): string {
  return personId === null ? `user ${String(userId)}` : `person ${String(personId)}`;
}
