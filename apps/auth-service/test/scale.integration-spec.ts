import { createHash, randomUUID } from 'node:crypto';
import { postgresOptions } from '@platform/database';
import { Metrics } from '@platform/service-defaults';
import { describeStatementsAtScale, scaleRows } from '@platform/testing';
import type { HotStatement } from '@platform/testing';
import { SYSTEM_CLOCK } from '@platform/time';
import { DataSource } from 'typeorm';
import { AccessControlRepository } from '../src/access-control/access-control.repository';
import { ApplicationsRepository } from '../src/applications/applications.repository';
import { TokenAuditRepository } from '../src/audit/token-audit.repository';
import type { TokenAuditRow } from '../src/audit/token-audit.repository';
import type { AuthConfig } from '../src/config';
import { ExternalIdentity } from '../src/identity/external-identity.entity';
import type { Identity, IdentityQuery } from '../src/identity/identity';
import { CombinedStoresRepository } from '../src/identity/combined-stores.repository';
import type { IdentityStore } from '../src/identity/combined-stores.repository';
import { PasswordLockoutsRepository } from '../src/identity/passwords/password-lockouts.repository';
import { StoredPasswordsRepository } from '../src/identity/passwords/stored-passwords.repository';
import {
  InternalLegacyRepository,
  PersonDirectoryRepository,
  ServiceProvidersRepository,
} from '../src/identity/single-stores.repository';
import { AUTH_SCHEMA } from '../src/migrations/schemas';
import { RateLimitsRepository } from '../src/rate-limits/rate-limits.repository';
import { RevocationQuotasRepository } from '../src/revocations/revocation-quotas.repository';
import { RevocationsRepository } from '../src/revocations/revocations.repository';
import { SessionsRepository } from '../src/sessions/sessions.repository';
import { PurgeExpiredJob } from '../src/purges/purge-expired.job';
import { RECORD_SNAPSHOT } from '../src/token/recorded-snapshots';
import { RefreshSessionsRepository } from '../src/token/refresh-sessions.repository';
import { TrustSignaturesRepository } from '../src/applications/trust-signatures.repository';
import { migrateWithIdentities } from './auth-fixture';
import { jtiOf, scaleRowsOfAuth } from './scale-rows';
import { sessionBoundStatements } from './scale-session-bounds';

const ROWS = scaleRows();
const MIDDLE = Math.floor(ROWS / 2);

/** Three stores in one database share one statement. */
const allStores = (d: DataSource): IdentityStore[] => [
  new PersonDirectoryRepository(d),
  new InternalLegacyRepository(d),
  new ServiceProvidersRepository(d),
];
const stores = (d: DataSource): CombinedStoresRepository => new CombinedStoresRepository(allStores(d));
const technicians = (d: DataSource): ServiceProvidersRepository => new ServiceProvidersRepository(d);
const lockouts = (d: DataSource): PasswordLockoutsRepository => new PasswordLockoutsRepository(d);
const groups = (d: DataSource): AccessControlRepository => new AccessControlRepository(d);
const revocations = (d: DataSource): RevocationsRepository => new RevocationsRepository(d);

/** Builds twenty requests. Concurrent ones share a statement. */
const twenty = <T>(of: (n: number) => T): T[] => Array.from({ length: 20 }, (_, i) => of(MIDDLE + 997 * i));

const namedTechnician = (n: number) => ({
  providerId: 10_001 + (n % (ROWS / 10)),
  name: 'Technician',
  userName: 'nobody',
});

const find = (query: IdentityQuery): HotStatement<DataSource> => ({
  name: `find a user by ${query.by} (${'userName' in query ? query.userName : 'number'})`,
  pages: 400,
  prepared: true,
  work: async (d) => expect(await stores(d).find(query)).toHaveLength(1),
});

const IDENTITIES: readonly HotStatement<DataSource>[] = [
  find({ by: 'user-name', userName: `Person.${String(10_000 + MIDDLE)}` }),
  // A member of the deepest group of a chain.
  find({ by: 'user-name', userName: `User.${String(10_000 + Math.min(ROWS, 50_000))}` }),
  find({ by: 'user-name', userName: `Tech.${String(MIDDLE)}` }),
  find({ by: 'person', personId: 10_000 + MIDDLE }),
  find({ by: 'user', userId: 10_000 + MIDDLE }),
  {
    name: 'find twenty users by name',
    pages: 4_000,
    prepared: true,
    work: async (d) => {
      const names = twenty((n) => ({ by: 'user-name', userName: `Tech.${String(n % ROWS)}` }) as const);
      const all = stores(d);
      expect((await Promise.all(names.map((query) => all.find(query)))).flat()).toHaveLength(20);
    },
  },
  {
    name: 'find a technician by account',
    pages: 100,
    prepared: true,
    work: async (d) => {
      const accounts = await technicians(d).findAccounts(namedTechnician(MIDDLE));
      expect(accounts?.byName).toHaveLength(2);
      const [technicianId] = accounts!.byName!;
      expect(await stores(d).find({ by: 'technician', technicianId: technicianId! })).toHaveLength(1);
    },
  },
  {
    name: 'find twenty technicians by account',
    pages: 600,
    prepared: true,
    work: async (d) => {
      const repository = technicians(d);
      const found = await Promise.all(twenty((n) => repository.findAccounts(namedTechnician(n))));
      expect(found.flatMap((accounts) => accounts?.byName)).toHaveLength(40);
    },
  },
  find({ by: 'windows-account', accountKey: `user.${String(10_000 + MIDDLE)}@REALM` }),
  {
    name: 'find a password',
    pages: 30,
    prepared: true,
    work: (d) => new StoredPasswordsRepository(allStores(d)).find('user.10500'),
  },
  {
    name: 'find an external identity',
    pages: 10,
    work: (d) =>
      d.getRepository(ExternalIdentity).findOneBy({ issuer: 'https://i', subject: String(MIDDLE) }),
  },
  {
    name: 'find an application',
    pages: 20,
    prepared: true,
    work: (d) => new ApplicationsRepository(d).findEnabled('demo-backend'),
  },
  {
    name: 'count a wrong password',
    pages: 100,
    prepared: true,
    work: (d) => lockouts(d).settleAttempt(String(MIDDLE), false),
  },
  {
    name: 'clear wrong passwords',
    pages: 100,
    prepared: true,
    work: (d) => lockouts(d).settleAttempt(String(MIDDLE + 1), true),
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

const identityOf = (personId: number): Identity =>
  ({ personId, userId: null, subject: `personid:${personId}` }) as Identity;
const AUDIT = { flow: 'user', status: 200, reason: 0 } as TokenAuditRow;
const nameOf = (n: number) => ({ jti: jtiOf(n), sessionId: jtiOf(n), issuedAt: new Date() });
const presented = () => ({
  tokenId: randomUUID(),
  issuedAt: new Date(),
  sessionId: randomUUID(),
  keyId: randomUUID(),
});
const BUCKET_LIMIT = { costSeconds: 1, toleranceSeconds: 60 };

const issueOf = (personId: number) => ({
  identity: identityOf(personId),
  presented: presented(),
  evidence: { at: new Date(), isCredential: false, secretVersions: [1] },
  audit: AUDIT,
  applicationKey: 'demo-backend',
  family: {
    sessionId: randomUUID(),
    tokenId: randomUUID(),
    subject: 's',
    applicationKey: 'demo-backend',
    flow: 'user',
    personaLimit: 31,
    authTime: null,
    lifetimeSeconds: 31_536_000,
    maxAgeSeconds: 31_536_000,
  },
});
const rotationOf = (n: number) => ({
  identity: identityOf(0),
  jti: jtiOf(ROWS + n),
  successorJti: randomUUID(),
  lifetimeSeconds: 100,
  maxAgeSeconds: 31_536_000,
  audit: AUDIT,
  sessionId: jtiOf(n),
  applicationKey: 'demo-backend',
});
const sessions = (d: DataSource): RefreshSessionsRepository =>
  new RefreshSessionsRepository(d, { REFRESH_TOKENS_PER_HOUR: 300 });
const findTwenty = (d: DataSource): Promise<unknown> => {
  const repository = sessions(d);
  return Promise.all(twenty(nameOf).map((name) => repository.find(name)));
};
const signatures = (d: DataSource): TrustSignaturesRepository => new TrustSignaturesRepository(d);

const TOKENS: readonly HotStatement<DataSource>[] = [
  {
    name: 'begin an issue',
    pages: 150,
    prepared: true,
    work: (d) => sessions(d).issue({ ...issueOf(MIDDLE), family: null }),
  },
  {
    name: 'begin an issue with a refresh token',
    pages: 250,
    prepared: true,
    work: (d) => sessions(d).issue(issueOf(MIDDLE)),
  },
  {
    name: 'begin twenty issues',
    pages: 1_500,
    prepared: true,
    work: (d) => Promise.all(twenty(issueOf).map(sessions(d).issue)),
  },
  { name: 'find a session', pages: 60, prepared: true, work: (d) => sessions(d).find(nameOf(MIDDLE)) },
  {
    name: 'find twenty sessions',
    pages: 800,
    prepared: true,
    work: findTwenty,
  },
  { name: 'record which transactions have ended', pages: 60, work: (d) => d.query(RECORD_SNAPSHOT) },
  { name: 'rotate', pages: 250, prepared: true, work: (d) => sessions(d).rotate(rotationOf(5)) },
  {
    name: 'rotate twenty',
    pages: 2_000,
    prepared: true,
    work: (d) => Promise.all(twenty(rotationOf).map(sessions(d).rotate)),
  },
  {
    name: 'end a session',
    pages: 100,
    work: (d) =>
      revocations(d).put({
        domain: 'sid',
        identifier: jtiOf(9),
        subject: 's',
        clientId: null,
        because: 'reuse',
      }),
  },
  {
    name: 'record a signature',
    pages: 100,
    prepared: true,
    work: (d) =>
      signatures(d).record({ applicationKey: 'a', code: Buffer.from(randomUUID()), signedAt: new Date() }),
  },
  {
    name: 'take from a bucket',
    pages: 100,
    prepared: true,
    work: (d) => new RateLimitsRepository(d).take(randomUUID(), BUCKET_LIMIT),
  },
  {
    name: 'take from a bucket and record a signature',
    pages: 150,
    prepared: true,
    work: (d) =>
      signatures(d).takeAndRecord(randomUUID(), BUCKET_LIMIT, {
        applicationKey: 'a',
        code: createHash('sha256').update('1').digest(),
        signedAt: new Date(),
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
    work: (d) => revocations(d).put({ domain: 'jti', identifier: jtiOf(8), subject: 's', clientId: null }),
  },
  {
    name: 'revoke a user',
    pages: 250,
    work: (d) =>
      revocations(d).put({ domain: 'svc-personid', identifier: '5', subject: 's', clientId: null }),
  },
  {
    name: 'revoke by sid',
    pages: 250,
    work: (d) => revocations(d).put({ domain: 'sid', identifier: jtiOf(7), subject: 's', clientId: null }),
  },
  {
    name: 'find the token being revoked',
    pages: 40,
    work: (d) => revocations(d).findIssued(jtiOf(MIDDLE)),
  },
  {
    name: 'find no token of this service',
    pages: 40,
    work: (d) => revocations(d).findIssued(randomUUID()),
  },
  {
    name: 'wait for the turn of a revocation',
    pages: 40,
    work: (d) =>
      revocations(d).delayRepetition([
        { domain: 'svc-personid', identifier: '5' },
        { domain: 'sub', identifier: 'personid:5' },
      ]),
  },
  {
    name: 'take from a quota of revocations',
    pages: 40,
    work: (d) => new RevocationQuotasRepository(d).take('personid:1', 100),
  },
  {
    // Half of the table belongs to one caller: the count stops at the limit.
    name: 'count the revocations of a caller',
    pages: 12_000,
    work: (d) =>
      new RevocationQuotasRepository(d).isFull(['s'], 10_000, { domain: 'jti', identifier: 'new' }),
  },
  {
    // A tenth of the table belongs to one application: the count stops at the limit.
    name: 'count the revocations of an application',
    pages: 12_000,
    work: (d) =>
      new RevocationQuotasRepository(d).isFullOfApplication('counted', 10_000, {
        domain: 'jti',
        identifier: 'new',
      }),
  },
  {
    // The listed session has as many used tokens as there are sessions.
    name: 'list the sessions of a person',
    pages: 80,
    work: async (d) => {
      const owner = { subjects: ['personid:0', `personid:${String(ROWS)}`], userId: 5 };
      const { sessions } = await new SessionsRepository(d).page(owner, 31_536_000 * 2, 100);
      expect(sessions).toHaveLength(1);
    },
  },
  {
    name: 'list the sessions of a user',
    pages: 60,
    work: (d) => new SessionsRepository(d).list({ userId: 5 }, 31_536_000, 100),
  },
  { name: 'poll the feed', pages: 200, work: (d) => revocations(d).list(RECENT, 10_000) },
  { name: 'list a page from the start', pages: 1_100, work: (d) => revocations(d).list(EPOCH, 1_000) },
  { name: 'list a late page', pages: 100, work: (d) => revocations(d).list(EPOCH, 1_000, afterDays(60)) },
];

const purge = (d: DataSource, AUDIT_RETENTION_DAYS: number): Promise<void> =>
  new PurgeExpiredJob(
    d,
    new TokenAuditRepository(d),
    { AUDIT_RETENTION_DAYS } as AuthConfig,
    SYSTEM_CLOCK,
    new Metrics(),
  ).run();

const PURGES: readonly HotStatement<DataSource>[] = [
  { name: 'purge when nothing has expired', pages: 1_500, work: (d) => purge(d, 400) },
  {
    name: 'purge two thirds of the audit trail, 10,000 entries at a time',
    pages: 70_000,
    work: (d) => purge(d, 100),
  },
];

/** Statements on the tables that grow by thousands of rows within the first minute of a new service. */
const EARLY: readonly HotStatement<DataSource>[] = [
  {
    ...find({ by: 'person', personId: 10_000 + MIDDLE }),
    work: (d) => stores(d).find({ by: 'person', personId: 10_000 + MIDDLE }),
  },
  { name: 'find a session', pages: 60, work: (d) => sessions(d).find(nameOf(MIDDLE)) },
  {
    name: 'find twenty sessions',
    pages: 800,
    work: findTwenty,
  },
  { name: 'rotate', pages: 250, work: (d) => sessions(d).rotate(rotationOf(7)) },
];

describeStatementsAtScale<DataSource>({
  migrate: migrateWithIdentities,
  fill: scaleRowsOfAuth(ROWS),
  early: EARLY,
  connect: (url) =>
    new DataSource(postgresOptions({ ...AUTH_SCHEMA.settings, url, poolSize: 1, statementTimeoutMs: 0 })),
  statements: [...PURGES, ...IDENTITIES, ...TOKENS, ...sessionBoundStatements(ROWS), ...REVOCATIONS],
});
