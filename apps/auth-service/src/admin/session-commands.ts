import { InvalidArgumentError } from 'commander';
import type { Command } from 'commander';
import { canonicalIdentifier, isUuid } from '../revocations/revocation';
import { RevocationsRepository } from '../revocations/revocations.repository';
import { RefreshFamily } from '../token/refresh-session.entity';
import { OWNER_DOMAINS, sessionOwner, SessionsRepository } from '../sessions/sessions.repository';
import { LIMIT, RefusedError, columns, printableUpTo } from './command';
import type { RunCommand } from './command';

/**
 * Maximum age of a listed session in seconds, counted from the sign-in. The command does not know the
 * REFRESH_MAX_AGE of the service. Since release 0.3.0 the expiry of the tokens includes that limit, so only
 * older sessions may be listed beyond their end.
 */
const MAX_AGE_SECONDS = 366 * 24 * 60 * 60;

export function addSessionCommands(program: Command, run: RunCommand): void {
  const group = program.command('sessions').description('Sessions: sign-ins that can be refreshed.');
  addList(group, run);
  addEnd(group, run);
}

function addList(group: Command, run: RunCommand): void {
  group
    .command('list')
    .description('List the sessions of a person, internal user or subject, newest first')
    .argument('<domain>', OWNER_DOMAINS.join(', '))
    .argument('<identifier>', 'person id, user id or subject')
    .option(...LIMIT)
    .action((domain: string, identifier: string, { limit }: { limit: number }) => {
      const owner = sessionOwner(domain, identifier);
      if (owner === null)
        throw new InvalidArgumentError(`"${identifier}" cannot be an identifier of ${domain}`);
      return run(async ({ dataSource }) => {
        const rows = await new SessionsRepository(dataSource).list(owner, MAX_AGE_SECONDS, limit);
        const sessions = rows.map(({ position: _, ...session }) => session);
        const lines = sessions.map(({ sid, flow, applicationKey, createdAt, lastUsedAt, expiresAt }) => [
          sid,
          flow,
          applicationKey,
          ...[createdAt, lastUsedAt, expiresAt].map((instant) => instant.toISOString()),
        ]);
        const title = ['SESSION', 'FLOW', 'APPLICATION', 'SINCE', 'LAST USED', 'EXPIRES'];
        return { json: sessions, text: columns([title, ...lines]) };
      });
    });
}

function addEnd(group: Command, run: RunCommand): void {
  group
    .command('end')
    .summary('End a session')
    .description(
      'End a session. Every service refuses its tokens within two seconds. To end all sessions of a user, use revocations set.',
    )
    .argument('<session>', 'claim sid, as listed')
    .option('--by <name>', 'who ends it, for the record', printableUpTo(255), 'administrator')
    .option('--force', 'even if it is not listed; sessions without refresh tokens never are')
    .action((session: string, { by: subject, force = false }: { by: string; force?: boolean }) =>
      run(async ({ dataSource }) => {
        const identifier = canonicalIdentifier('sid', session);
        if (!isUuid(identifier)) throw new RefusedError(`"${session}" is no session`);
        if (!force && !(await dataSource.getRepository(RefreshFamily).existsBy({ sessionId: identifier })))
          throw new RefusedError(
            `there is no session ${identifier} that can be refreshed: pass --force to end one without refresh tokens`,
          );
        await new RevocationsRepository(dataSource).put({
          domain: 'sid',
          identifier,
          subject,
          clientId: null,
        });
        return { json: { sid: identifier }, text: `Ended session ${identifier}.` };
      }),
    );
}
