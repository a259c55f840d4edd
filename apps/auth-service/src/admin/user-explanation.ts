import { isStatementTimeout } from '@platform/database';
import type { PersonaName } from '@platform/personas';
import { personaNames } from '@platform/personas';
import type { DataSource } from 'typeorm';
import { AuditedAttemptsRepository } from '../audit/audited-attempts.repository';
import type { AuditedAttempt } from '../audit/audited-attempts.repository';
import { ExternalIdentity } from '../identity/external-identity.entity';
import { formatSubject, userNameKey } from '../identity/identity';
import type { IdentityQuery, IdentityRecord, Resolution } from '../identity/identity';
import { CombinedStoresRepository } from '../identity/combined-stores.repository';
import type { IdentityStore } from '../identity/combined-stores.repository';
import { mergeIdentities } from '../identity/merge-identities';
import { readPasswordHash } from '../identity/passwords/password-hash';
import { PasswordLockoutsRepository } from '../identity/passwords/password-lockouts.repository';
import type { FailedLogins } from '../identity/passwords/password-lockouts.repository';
import { StoredPasswordsRepository } from '../identity/passwords/stored-passwords.repository';
import type { FoundPassword } from '../identity/passwords/stored-passwords.repository';
import { toWire } from '../revocations/revocation';
import { RevocationsRepository } from '../revocations/revocations.repository';
import { SessionsRepository } from '../sessions/sessions.repository';
import type { SessionOwner, SessionRow } from '../sessions/sessions.repository';
import { RefusedError } from './command';
import { inAllStores, queryOfSubject } from './known-users';
import type { CommandContext } from './command';

/** The user that the administrator names. */
export type AskedUser = { userName: string } | { subject: string };

/** A reason for refusing a user, and the sign-ins that it affects. */
interface Obstacle {
  blocks: 'every sign-in' | 'password' | 'single sign-on';
  because: string;
}

/** An account in its store, without its hash. */
interface ExplainedAccount {
  store: IdentityRecord['store'];
  accountId: number;
  userName: string;
  disabled: boolean;
  personas: PersonaName[];
  personId: number | null;
  userId: number | null;
  providerId: number | null;
  /** The scheme of the stored hash. `unreadable` means that every password counts as wrong. */
  password: string;
}

/** Everything that decides whether a user may sign in. */
export interface UserExplanation {
  asked: AskedUser;
  outcome: Resolution['outcome'];
  subject: string | null;
  obstacles: Obstacle[];
  accounts: ExplainedAccount[];
  failedLogins: FailedLogins[];
  externalIdentities: { issuer: string; subject: string }[];
  revocations: ReturnType<typeof toWire>[];
  /** Null: the audit trail is too large to search. */
  attempts: AuditedAttempt[] | null;
  sessions: Omit<SessionRow, 'position'>[];
}

/** Maximum age of a listed session in seconds; see `sessions list`. */
const MAX_AGE_SECONDS = 366 * 24 * 60 * 60;

/**
 * Reads every store, as a sign-in does, and the tables that can refuse a sign-in. Read-only.
 * @param shown `since`: the earliest date of listed attempts; `limit`: maximum attempts, and maximum sessions
 */
export async function explainUser(
  asked: AskedUser,
  context: Pick<CommandContext, 'dataSource' | 'inStore'>,
  shown: { since: Date; limit: number },
): Promise<UserExplanation> {
  return inAllStores(context, (stores) => explain(asked, stores, context.dataSource, shown));
}

async function explain(
  asked: AskedUser,
  stores: readonly IdentityStore[],
  dataSource: DataSource,
  { since, limit }: { since: Date; limit: number },
): Promise<UserExplanation> {
  const records = await new CombinedStoresRepository(stores).find(queryOf(asked));
  const resolution = mergeIdentities(records);
  const names = namesOf(asked, records);
  const subjects = subjectsOf(asked, resolution, records);
  const failedLogins = await new PasswordLockoutsRepository(dataSource).find(names);
  const passwords = await passwordsOf(names, stores);
  const externalIdentities = await externalIdentitiesOf(records, dataSource);
  return {
    asked,
    outcome: resolution.outcome,
    subject: resolution.outcome === 'resolved' ? resolution.identity.subject : null,
    obstacles: [
      ...identityObstacles(records, resolution),
      ...passwords.flatMap(passwordObstacles),
      ...failedLogins.flatMap(lockObstacles),
      ...(records.length > 0 && externalIdentities.length === 0 ? [UNMAPPED] : []),
    ],
    accounts: await Promise.all(records.map((record) => accountOf(record, stores))),
    failedLogins,
    externalIdentities,
    revocations: await revocationsOf(records, subjects, dataSource),
    attempts: await attemptsOf({ userNames: names, subjects }, dataSource, since, limit),
    sessions: await sessionsOf(records, subjects, dataSource, limit),
  };
}

const UNMAPPED: Obstacle = {
  blocks: 'single sign-on',
  because: 'no subject of an identity provider is mapped to them (external-identities add)',
};

function queryOf(asked: AskedUser): IdentityQuery {
  if ('userName' in asked) return { by: 'user-name', userName: asked.userName };
  const query = queryOfSubject(asked.subject);
  if (query !== null) return query;
  throw new RefusedError(
    `"${asked.subject}" names no account: write personid:<n>, userid:<n> or technician:<provider>:<account>`,
  );
}

/** Returns the folded names under which the user may sign in. */
function namesOf(asked: AskedUser, records: readonly IdentityRecord[]): string[] {
  const own = 'userName' in asked ? [userNameKey(asked.userName)] : [];
  return [...new Set([...own, ...records.map((record) => record.userNameKey)])];
}

/**
 * Returns every subject that the user's tokens may carry, including those from before accounts were linked.
 */
function subjectsOf(asked: AskedUser, resolution: Resolution, records: readonly IdentityRecord[]): string[] {
  const persons = records.flatMap(({ personId }) =>
    personId === null ? [] : [formatSubject({ kind: 'person', personId })],
  );
  const users = records.flatMap(({ userId }) =>
    userId === null ? [] : [formatSubject({ kind: 'user', userId })],
  );
  const technicians = records.flatMap(({ providerId, accountId: technicianId }) =>
    providerId === null ? [] : [formatSubject({ kind: 'technician', providerId, technicianId })],
  );
  const resolved = resolution.outcome === 'resolved' ? [resolution.identity.subject] : [];
  const own = 'subject' in asked ? [asked.subject] : [];
  return [...new Set([...resolved, ...own, ...persons, ...users, ...technicians])];
}

function identityObstacles(records: readonly IdentityRecord[], resolution: Resolution): Obstacle[] {
  const every = (because: string): Obstacle => ({ blocks: 'every sign-in', because });
  if (records.length === 0) return [every('no store knows them')];
  const disabled = records.filter((record) => record.disabled);
  if (disabled.length > 0)
    return disabled.map(({ store, accountId }) => {
      const what = store === 'service-providers' ? ', or the provider,' : '';
      return every(`account ${String(accountId)}${what} is disabled in ${store}`);
    });
  if (resolution.outcome === 'ambiguous')
    return [every('the accounts below are not linked to each other, or their links disagree')];
  if (resolution.outcome === 'resolved' && resolution.identity.personas === 0)
    return [every('no account gives them a persona')];
  return [];
}

async function passwordsOf(
  names: readonly string[],
  stores: readonly IdentityStore[],
): Promise<{ name: string; found: FoundPassword }[]> {
  const passwords = new StoredPasswordsRepository(stores);
  return Promise.all(names.map(async (name) => ({ name, found: await passwords.find(name) })));
}

function passwordObstacles({ name, found }: { name: string; found: FoundPassword }): Obstacle[] {
  if (found.found) {
    const { store, accountId, hash } = found.password;
    if (readPasswordHash(hash).scheme !== 'unknown') return [];
    const what = `the stored hash of account ${String(accountId)} in ${store} cannot be read`;
    return [{ blocks: 'password', because: `${what}, or costs too much: every password counts as wrong` }];
  }
  // Unknown and disabled accounts are already listed as obstacles to every sign-in.
  return found.because === 'no password'
    ? [{ blocks: 'password', because: `no account "${name}" has a password` }]
    : [];
}

function lockObstacles({ userNameKey: name, lockedUntil }: FailedLogins): Obstacle[] {
  if (lockedUntil === null) return [];
  const because = `"${name}" is locked until ${lockedUntil.toISOString()}, after wrong passwords`;
  return [{ blocks: 'password', because }];
}

async function accountOf(
  {
    store,
    accountId,
    userNameKey: userName,
    disabled,
    personas,
    personId,
    userId,
    providerId,
  }: IdentityRecord,
  stores: readonly IdentityStore[],
): Promise<ExplainedAccount> {
  const { dataSource, accounts } = stores.find(({ name }) => name === store)!;
  const row = await dataSource.getRepository(accounts.entity).findOneBy({ [accounts.id]: accountId });
  const hash = row?.passwordHash ?? null;
  const scheme = hash === null ? 'none' : readPasswordHash(hash).scheme;
  return {
    store,
    accountId,
    userName,
    disabled,
    personas: personaNames(personas).filter((name) => name !== 'None'),
    personId,
    userId,
    providerId,
    password: scheme === 'unknown' ? 'unreadable' : scheme,
  };
}

async function externalIdentitiesOf(
  records: readonly IdentityRecord[],
  dataSource: DataSource,
): Promise<{ issuer: string; subject: string }[]> {
  const where = [
    ...records.flatMap(({ personId }) => (personId === null ? [] : [{ personId }])),
    ...records.flatMap(({ userId }) => (userId === null ? [] : [{ userId }])),
  ];
  // An empty condition would match every user's identities.
  if (where.length === 0) return [];
  const order = { issuer: 'ASC', subject: 'ASC' } as const;
  const found = await dataSource.getRepository(ExternalIdentity).find({ where, order });
  return found.map(({ issuer, subject }) => ({ issuer, subject }));
}

async function revocationsOf(
  records: readonly IdentityRecord[],
  subjects: readonly string[],
  dataSource: DataSource,
): Promise<ReturnType<typeof toWire>[]> {
  const revocations = new RevocationsRepository(dataSource);
  const found = await Promise.all([
    ...subjects.map((subject) => revocations.find('sub', subject)),
    ...distinct(records.map(({ personId }) => personId)).map((id) => revocations.find('svc-personid', id)),
    ...distinct(records.map(({ userId }) => userId)).map((id) => revocations.find('internal-legacy', id)),
  ]);
  return found.flatMap((row) => (row === null ? [] : [toWire(row)]));
}

/** Returns null when reading the audit trail since `since` exceeds the statement timeout. */
async function attemptsOf(
  who: { userNames: string[]; subjects: string[] },
  dataSource: DataSource,
  since: Date,
  limit: number,
): Promise<AuditedAttempt[] | null> {
  try {
    return await new AuditedAttemptsRepository(dataSource).find(who, since, limit);
  } catch (error) {
    if (isStatementTimeout(error)) return null;
    throw error;
  }
}

async function sessionsOf(
  records: readonly IdentityRecord[],
  subjects: readonly string[],
  dataSource: DataSource,
  limit: number,
): Promise<Omit<SessionRow, 'position'>[]> {
  const owners: SessionOwner[] = [
    ...subjects.map((subject) => ({ subject })),
    ...records.flatMap(({ userId }) => (userId === null ? [] : [{ userId }])),
  ];
  const sessions = new SessionsRepository(dataSource);
  const found = await Promise.all(owners.map((owner) => sessions.list(owner, MAX_AGE_SECONDS, limit)));
  const bySid = new Map(found.flat().map(({ position: _, ...session }) => [session.sid, session]));
  return [...bySid.values()]
    .sort((one, other) => other.createdAt.getTime() - one.createdAt.getTime())
    .slice(0, limit);
}

function distinct(identifiers: readonly (number | null)[]): string[] {
  return [...new Set(identifiers.filter((id) => id !== null))].map(String);
}
