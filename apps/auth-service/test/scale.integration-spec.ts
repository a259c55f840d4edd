import { createHash, randomUUID } from 'node:crypto';
import { postgresOptions } from '@platform/database';
import { describeStatementsAtScale, scaleRows } from '@platform/testing';
import type { HotStatement } from '@platform/testing';
import { DataSource } from 'typeorm';
import { AccessControlRepository } from '../src/access-control/access-control.repository';
import { ApplicationsRepository } from '../src/applications/applications.repository';
import { recordAuthenticationCode } from '../src/rate-limits/record-authentication-code.query';
import type { TokenAuditRow } from '../src/audit/token-audit';
import type { AuthConfig } from '../src/config';
import type { Identity, IdentityQuery } from '../src/identity/identity';
import { IdentityDirectory } from '../src/identity/identity-directory.service';
import { InternalLegacyStore } from '../src/identity/internal-legacy.store';
import { settlePasswordAttempt } from '../src/identity/passwords/settle-password-attempt.query';
import { PersonDirectoryStore } from '../src/identity/person-directory.store';
import { ServiceProvidersStore } from '../src/identity/service-providers.store';
import { AUTH_SCHEMA } from '../src/migrations/schemas';
import { findExternalIdentity } from '../src/openid/find-external-identity.query';
import { takeAndRecordCode, takeFromBucket } from '../src/rate-limits/take-from-bucket.query';
import { RevocationsRepository } from '../src/revocations/revocations.repository';
import { beginIssues } from '../src/token/begin-issue.query';
import { findRefreshSessions } from '../src/token/find-refresh-session.query';
import { PurgeExpiredJob } from '../src/token/purge-expired.job';
import { revokeRefreshFamily } from '../src/token/revoke-refresh-family.query';
import { rotateRefreshTokens } from '../src/token/rotate-refresh-token.query';
import { migrateWithIdentities } from './auth-fixture';
import { scaleRowsOfAuth } from './scale-rows';

const ROWS = scaleRows();
const MIDDLE = Math.floor(ROWS / 2);

/** Three stores in one database are asked in one statement. */
const directory = (d: DataSource): IdentityDirectory =>
  new IdentityDirectory([
    new PersonDirectoryStore(d),
    new InternalLegacyStore(d),
    new ServiceProvidersStore(d),
  ]);
const groups = (d: DataSource): AccessControlRepository => new AccessControlRepository(d);
const revocations = (d: DataSource): RevocationsRepository => new RevocationsRepository(d);

const find = (query: IdentityQuery): HotStatement<DataSource> => ({
  name: `find a user by ${query.by} (${'userName' in query ? query.userName : 'number'})`,
  pages: 400,
  prepared: true,
  work: async (d) => expect(await directory(d).find(query)).toHaveLength(1),
});

const IDENTITIES: readonly HotStatement<DataSource>[] = [
  find({ by: 'user-name', userName: `Person.${String(10_000 + MIDDLE)}` }),
  // In the deepest group of a chain.
  find({ by: 'user-name', userName: `User.${String(10_000 + Math.min(ROWS, 50_000))}` }),
  find({ by: 'user-name', userName: `Tech.${String(MIDDLE)}` }),
  find({ by: 'person', personId: 10_000 + MIDDLE }),
  find({ by: 'user', userId: 10_000 + MIDDLE }),
  find({ by: 'windows-account', accountKey: `user.${String(10_000 + MIDDLE)}@REALM` }),
  {
    name: 'find a password',
    pages: 30,
    prepared: true,
    work: (d) => directory(d).findPassword('user.10500'),
  },
  {
    name: 'find an external identity',
    pages: 10,
    work: (d) => findExternalIdentity(d, 'https://i', String(MIDDLE)),
  },
  {
    name: 'find an application',
    pages: 20,
    prepared: true,
    work: (d) => new ApplicationsRepository(d).findEnabled(['demo-backend']),
  },
  {
    name: 'count a wrong password',
    pages: 100,
    prepared: true,
    work: (d) => settlePasswordAttempt(d, String(MIDDLE), false),
  },
  {
    name: 'clear wrong passwords',
    pages: 100,
    prepared: true,
    work: (d) => settlePasswordAttempt(d, String(MIDDLE + 1), true),
  },
  {
    name: 'members of a group over 50 levels',
    pages: 5_000,
    work: async (d) => expect(await groups(d).findMembers('g0')).toHaveLength(299),
  },
  { name: 'members of an unknown group', pages: 50, work: (d) => groups(d).findMembers('nobody') },
  {
    name: 'access through 50 levels of groups',
    pages: 1_000,
    work: async (d) =>
      expect(await groups(d).hasAccess('door199', 10_000 + Math.min(ROWS, 50_000))).toBe(true),
  },
];

const identityOf = (personId: number): Identity => ({ personId, userId: null }) as Identity;
const AUDIT = { flow: 'user', status: 200, reason: 0 } as TokenAuditRow;
const jtiOf = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
const presented = () => ({ tokenId: randomUUID(), issuedAt: new Date() });
const BUCKET_LIMIT = { costSeconds: 1, toleranceSeconds: 60 };

const issueOf = (personId: number) => ({
  ...{ identity: identityOf(personId), presented: presented(), audit: AUDIT },
  family: {
    ...{ familyId: randomUUID(), tokenId: randomUUID(), subject: 's', applicationKey: 'demo-backend' },
    ...{ flow: 'user', personaLimit: 31, authTime: null, lifetimeSeconds: 31_536_000 },
  },
});
const rotationOf = (n: number) => ({
  ...{ identity: identityOf(0), jti: jtiOf(ROWS + n), successorJti: randomUUID() },
  ...{ lifetimeSeconds: 100, audit: AUDIT },
});
/** Requests that arrive together are one statement. */
const twenty = <T>(of: (n: number) => T): T[] => Array.from({ length: 20 }, (_, i) => of(MIDDLE + 997 * i));

const TOKENS: readonly HotStatement<DataSource>[] = [
  {
    name: 'begin an issue',
    pages: 150,
    prepared: true,
    work: (d) => beginIssues(d, [{ ...issueOf(MIDDLE), family: null }]),
  },
  {
    name: 'begin an issue with a refresh token',
    pages: 250,
    prepared: true,
    work: (d) => beginIssues(d, [issueOf(MIDDLE)]),
  },
  { name: 'begin twenty issues', pages: 1_500, prepared: true, work: (d) => beginIssues(d, twenty(issueOf)) },
  { name: 'find a session', pages: 60, prepared: true, work: (d) => findRefreshSessions(d, [jtiOf(MIDDLE)]) },
  {
    name: 'find twenty sessions',
    pages: 800,
    prepared: true,
    work: (d) => findRefreshSessions(d, twenty(jtiOf)),
  },
  { name: 'rotate', pages: 250, prepared: true, work: (d) => rotateRefreshTokens(d, [rotationOf(5)]) },
  {
    name: 'rotate twenty',
    pages: 2_000,
    prepared: true,
    work: (d) => rotateRefreshTokens(d, twenty(rotationOf)),
  },
  {
    name: 'end a session',
    pages: 100,
    work: (d) => revokeRefreshFamily(d, jtiOf(9), 'reuse', { address: null, traceId: null }),
  },
  {
    name: 'record a signature',
    pages: 100,
    prepared: true,
    work: (d) => recordAuthenticationCode(d, 'a', Buffer.from(randomUUID())),
  },
  {
    name: 'take from a bucket',
    pages: 100,
    prepared: true,
    work: (d) => takeFromBucket(d, randomUUID(), BUCKET_LIMIT),
  },
  {
    name: 'take from a bucket and record a signature',
    pages: 150,
    prepared: true,
    work: (d) =>
      takeAndRecordCode(d, randomUUID(), BUCKET_LIMIT, {
        applicationKey: 'a',
        code: createHash('sha256').update('1').digest(),
      }),
  },
];

const EPOCH = new Date(0);
const RECENT = new Date(Date.now() - 86_400_000 - 60_000);
const afterDays = (days: number) => ({
  revocationDate: new Date(Date.now() - days * 86_400_000),
  domain: '',
  identifier: '',
});

const REVOCATIONS: readonly HotStatement<DataSource>[] = [
  {
    name: 'revoke a session',
    pages: 250,
    work: (d) => revocations(d).put({ domain: 'jti', identifier: jtiOf(8) }, { subject: 's', clientId: null }),
  },
  {
    name: 'revoke a user',
    pages: 250,
    work: (d) =>
      revocations(d).put({ domain: 'svc-personid', identifier: '5' }, { subject: 's', clientId: null }),
  },
  { name: 'poll the feed', pages: 200, work: (d) => revocations(d).list(RECENT, 10_000) },
  { name: 'list a page from the start', pages: 1_100, work: (d) => revocations(d).list(EPOCH, 1_000) },
  { name: 'list a page far on', pages: 100, work: (d) => revocations(d).list(EPOCH, 1_000, afterDays(60)) },
];

const purge = (d: DataSource, AUDIT_RETENTION_DAYS: number): Promise<void> =>
  new PurgeExpiredJob(d, { AUDIT_RETENTION_DAYS } as AuthConfig).run();

const PURGES: readonly HotStatement<DataSource>[] = [
  { name: 'purge when nothing has expired', pages: 1_500, work: (d) => purge(d, 400) },
  {
    name: 'purge two thirds of the audit trail, 10,000 entries at a time',
    pages: 70_000,
    work: (d) => purge(d, 100),
  },
];

/** The tables that grow by thousands of rows within a minute of a new service. */
const EARLY: readonly HotStatement<DataSource>[] = [
  { name: 'find a session', pages: 60, work: (d) => findRefreshSessions(d, [jtiOf(MIDDLE)]) },
  { name: 'find twenty sessions', pages: 800, work: (d) => findRefreshSessions(d, twenty(jtiOf)) },
  { name: 'rotate', pages: 250, work: (d) => rotateRefreshTokens(d, [rotationOf(7)]) },
];

describeStatementsAtScale<DataSource>({
  migrate: migrateWithIdentities,
  fill: scaleRowsOfAuth(ROWS),
  early: EARLY,
  connect: (url) =>
    new DataSource(postgresOptions({ ...AUTH_SCHEMA.settings, url, poolSize: 1, statementTimeoutMs: 0 })),
  statements: [...PURGES, ...IDENTITIES, ...TOKENS, ...REVOCATIONS],
});
