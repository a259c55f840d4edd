import { DAY_MS, SYSTEM_CLOCK } from '@platform/time';
import { InvalidArgumentError } from 'commander';
import type { Command } from 'commander';
import { auditedText } from '../audit/token-attempt';
import { TokenRejectionReason } from '../rejections/token-rejection';
import { columns, countUpTo, parseInstant, printableUpTo } from './command';
import type { RunCommand } from './command';
import { explainUser } from './user-explanation';
import type { UserExplanation } from './user-explanation';

const MAX_NAME = 256;
const MAX_SUBJECT = 320;
const MAX_SHOWN = 1_000;
/** Maximum length of a cell, because names in the stores may be longer than a line. */
const MAX_CELL = 200;

interface ExplainOptions {
  subject?: string;
  since?: Date;
  limit: number;
}

/** Adds the commands on users of the identity stores. */
export function addUserCommands(program: Command, run: RunCommand): void {
  program
    .command('users')
    .description('Users, as the identity stores know them.')
    .command('explain')
    .summary('Explain why a user cannot sign in')
    .description(
      'Explain why a user cannot sign in: the records in every store, locks after wrong passwords, the true reasons of their last attempts, ' +
        'revocations and sessions. It changes nothing and shows no hashes, secrets or tokens.',
    )
    .argument('[user-name]', 'the name they sign in with', printableUpTo(MAX_NAME))
    .option(
      '--subject <sub>',
      'instead of the name: the claim sub of their tokens, e.g. personid:1001',
      printableUpTo(MAX_SUBJECT),
    )
    .option('--since <date>', 'attempts since then; by default the last 24 hours', parseInstant)
    .option('--limit <number>', 'at most this many attempts and sessions', countUpTo(MAX_SHOWN), 10)
    .action((userName: string | undefined, { subject, since, limit }: ExplainOptions) => {
      const asked = subject === undefined ? userName && { userName } : { subject };
      if (!asked || (userName !== undefined && subject !== undefined))
        throw new InvalidArgumentError('name either a user name or --subject');
      return run(async (context) => {
        const aDayAgo = new Date(SYSTEM_CLOCK.now().getTime() - DAY_MS);
        const json = await explainUser(asked, context, { since: since ?? aDayAgo, limit });
        return { json, text: textOf(json) };
      });
    });
}

function textOf(explanation: UserExplanation): string {
  const { asked, obstacles, subject } = explanation;
  const who = shown('userName' in asked ? asked.userName : asked.subject);
  const verdict =
    obstacles.length === 0
      ? [`Nothing here keeps ${who} from signing in.`]
      : [
          `What keeps ${who} from signing in:`,
          ...obstacles.map(({ blocks, because }) => `  ${blocks}: ${because}`),
        ];
  const identity = subject === null ? [] : [`Tokens name ${subject}.`];
  const tables = [
    table('Accounts', ACCOUNT_HEAD, explanation.accounts.map(accountRow)),
    table('Failed logins', FAILURE_HEAD, explanation.failedLogins.map(failureRow)),
    table('External identities', ['ISSUER', 'SUBJECT'], explanation.externalIdentities.map(externalRow)),
    table('Revocations', ['DOMAIN', 'IDENTIFIER', 'REVOKED AT'], explanation.revocations.map(revocationRow)),
    explanation.attempts === null
      ? 'Attempts: too many requests since then to search them all; give a later --since.'
      : table('Attempts', ATTEMPT_HEAD, explanation.attempts.map(attemptRow)),
    table('Sessions', SESSION_HEAD, explanation.sessions.map(sessionRow)),
  ];
  return [[...verdict, ...identity].join('\n'), ...tables].join('\n\n');
}

function table(title: string, head: readonly string[], rows: readonly string[][]): string {
  return rows.length === 0 ? `${title}: none.` : `${title}:\n${columns([[...head], ...rows])}`;
}

const ACCOUNT_HEAD = ['STORE', 'ACCOUNT', 'USER NAME', 'STATE', 'PERSONAS', 'PERSON', 'USER', 'PASSWORD'];

function accountRow(account: UserExplanation['accounts'][number]): string[] {
  return [
    account.store,
    String(account.accountId),
    shown(account.userName),
    account.disabled ? 'disabled' : 'enabled',
    account.personas.join(',') || '-',
    shown(account.personId),
    shown(account.userId),
    account.password,
  ];
}

const FAILURE_HEAD = ['USER NAME', 'WRONG PASSWORDS', 'LOCKS', 'LOCKED UNTIL', 'LAST FAILURE'];

function failureRow(failed: UserExplanation['failedLogins'][number]): string[] {
  return [
    shown(failed.userNameKey),
    String(failed.failures),
    String(failed.lockouts),
    shown(failed.lockedUntil),
    shown(failed.lastFailureAt),
  ];
}

function externalRow({ issuer, subject }: UserExplanation['externalIdentities'][number]): string[] {
  return [shown(issuer), shown(subject)];
}

function revocationRow(revocation: UserExplanation['revocations'][number]): string[] {
  return [revocation.domain, shown(revocation.identifier), revocation.revocationDate];
}

const ATTEMPT_HEAD = ['AT', 'FLOW', 'STATUS', 'REASON', 'WHY', 'APPLICATION', 'ADDRESS'];

function attemptRow(attempt: NonNullable<UserExplanation['attempts']>[number]): string[] {
  return [
    shown(attempt.occurredAt),
    attempt.flow,
    String(attempt.status),
    attempt.reason === null ? '-' : `${String(attempt.reason)} ${TokenRejectionReason[attempt.reason] ?? ''}`,
    shown(attempt.detail),
    shown(attempt.applicationKey),
    shown(attempt.address),
  ];
}

const SESSION_HEAD = ['SESSION', 'FLOW', 'APPLICATION', 'SINCE', 'LAST USED', 'EXPIRES'];

function sessionRow(session: UserExplanation['sessions'][number]): string[] {
  return [
    session.sid,
    session.flow,
    shown(session.applicationKey),
    shown(session.createdAt),
    shown(session.lastUsedAt),
    shown(session.expiresAt),
  ];
}

/** Formats a value for a terminal: bounded, and without characters that change how a line is displayed. */
function shown(value: string | number | Date | null): string {
  if (value === null) return '-';
  if (value instanceof Date) return value.toISOString();
  return auditedText(String(value), MAX_CELL) ?? '-';
}
