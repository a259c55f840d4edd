import { postgresOptions } from '@platform/database';
import type { PostgresSettings } from '@platform/database';
import { DataSource } from 'typeorm';
import { APPLICATION_ENTITIES } from '../applications/application.entity';
import { TrustReplay } from '../applications/trust-replay.entity';
import { AUDIT_ENTITIES } from '../audit/audit.entity';
import { ExternalIdentity } from '../identity/external-identity.entity';
import type { Store } from '../identity/identity';
import {
  INTERNAL_LEGACY_ENTITIES,
  PERSON_DIRECTORY_ENTITIES,
  SERVICE_PROVIDERS_ENTITIES,
} from '../identity/identity-stores.entity';
import { PasswordLockout } from '../identity/passwords/password-lockout.entity';
import { SigningKeyEntity } from '../keys/signing-key.entity';
import { OpenIdSignIn, SignOnCode } from '../openid/sign-in.entity';
import { RateLimitBucket } from '../rate-limits/rate-limit.entity';
import { RevocationEntity, RevocationQuota } from '../revocations/revocation.entity';
import { RecordedSnapshot } from '../token/recorded-snapshot.entity';
import { RefreshFamily, RefreshToken } from '../token/refresh-session.entity';
import { WindowsTicket } from '../windows/windows-tickets.repository';
import { CreateAuthTables1764000000000 } from './1764000000000-create-auth-tables';
import {
  CreateInternalLegacy1764000000200,
  CreatePersonDirectory1764000000100,
  CreateServiceProviders1764000000300,
} from './1764000000100-create-identity-stores';
import { Sessions1796100000000 } from './1796100000000-sessions';
import {
  AddPersonaOfAuthority1796200000000,
  IndexTechnicianNames1796200000100,
} from './1796200000000-persona-of-authority';
import { LimitApplications1796200000200 } from './1796200000200-limit-applications';
import { ReturnToApplications1796300000000 } from './1796300000000-return-to-applications';
import { AllowAdministrators1796500000000 } from './1796500000000-allow-administrators';
import {
  BoundRevocations1796510000000,
  CountRefusals1796510000050,
  IndexRevocations1796510000100,
} from './1796510000000-bound-revocations';
import { SessionsByOwner1796520000000 } from './1796520000000-sessions-by-owner';
import {
  ConfirmRevocations1796530000000,
  IndexUnconfirmed1796530000100,
} from './1796530000000-confirm-revocations';
import {
  CountClients1796540000050,
  IndexCountedClients1796540000100,
  LateCommits1796540000000,
} from './1796540000000-late-commits';
import { NewestRefreshTokens1796550000000 } from './1796550000000-newest-refresh-tokens';
import { BoundSignIns1796560000000, IndexSignIns1796560000100 } from './1796560000000-bound-sign-ins';
import { NewestIssue1796570000000 } from './1796570000000-newest-issue';
import { ConfidentialApplications1796580000000 } from './1796580000000-confidential-applications';
import { PruneUsedTokens1796585000000 } from './1796585000000-prune-used-tokens';
import { EvidenceOfCodes1796587000000 } from './1796587000000-evidence-of-codes';
import { LiveAndEndedSessions1796590000000 } from './1796590000000-live-and-ended-sessions';

/**
 * A schema of this service: its settings for `@platform/database`, and the privileges of the service's role.
 */
export interface ServiceSchema {
  settings: Omit<PostgresSettings, 'url' | 'poolSize'>;
  /**
   * Returns statements that grant the privileges which the running service needs, and no more. `role` is a
   * quoted identifier.
   */
  grants: (role: string) => string[];
}

/** Bounds the response time of a token endpoint when the database hangs. */
const STATEMENT_TIMEOUT_MS = 5_000;

function schema(
  name: string,
  { entities, migrations }: Pick<PostgresSettings, 'entities' | 'migrations'>,
  grants: ServiceSchema['grants'],
): ServiceSchema {
  return {
    settings: {
      schema: name,
      applicationName: 'auth-service',
      entities,
      migrations,
      statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    },
    grants: (role) => [`GRANT USAGE ON SCHEMA ${name} TO ${role}`, ...grants(role)],
  };
}

/** The service's own tables. The service only reads applications, which the owner role administers. */
export const AUTH_SCHEMA = schema(
  'auth',
  {
    entities: [
      ...APPLICATION_ENTITIES,
      ...AUDIT_ENTITIES,
      ExternalIdentity,
      OpenIdSignIn,
      PasswordLockout,
      RateLimitBucket,
      RecordedSnapshot,
      RefreshFamily,
      RefreshToken,
      RevocationEntity,
      RevocationQuota,
      SigningKeyEntity,
      SignOnCode,
      TrustReplay,
      WindowsTicket,
    ],
    migrations: [
      CreateAuthTables1764000000000,
      Sessions1796100000000,
      LimitApplications1796200000200,
      ReturnToApplications1796300000000,
      AllowAdministrators1796500000000,
      SessionsByOwner1796520000000,
      BoundRevocations1796510000000,
      CountRefusals1796510000050,
      IndexRevocations1796510000100,
      ConfirmRevocations1796530000000,
      IndexUnconfirmed1796530000100,
      LateCommits1796540000000,
      CountClients1796540000050,
      IndexCountedClients1796540000100,
      NewestRefreshTokens1796550000000,
      BoundSignIns1796560000000,
      IndexSignIns1796560000100,
      NewestIssue1796570000000,
      ConfidentialApplications1796580000000,
      PruneUsedTokens1796585000000,
      EvidenceOfCodes1796587000000,
      LiveAndEndedSessions1796590000000,
    ],
  },
  (role) => [
    `GRANT SELECT ON ALL TABLES IN SCHEMA auth TO ${role}`,
    // The purges need UPDATE for `FOR UPDATE SKIP LOCKED`.
    `GRANT INSERT, UPDATE, DELETE ON auth.trust_replay, auth.windows_ticket, auth.openid_sign_in, auth.sign_on_code TO ${role}`,
    `GRANT INSERT, UPDATE, DELETE ON auth.refresh_family, auth.refresh_token, auth.revocations, auth.password_lockout TO ${role}`,
    // The purges and release 1.0.0 name the partitions.
    `GRANT INSERT, UPDATE, DELETE ON auth.revocation, auth.session_revocation TO ${role}`,
    `GRANT INSERT, UPDATE ON auth.signing_key TO ${role}`,
    // Insert-only: the service may not even read these audit trails.
    `REVOKE ALL ON auth.token_audit, auth.revocation_audit FROM ${role}`,
    `GRANT INSERT ON auth.token_audit, auth.revocation_audit TO ${role}`,
    // Only triggers write the trail of administration, with the owner's privileges.
    `REVOKE ALL ON auth.administration_audit FROM ${role}`,
    // Repeats the migration's REVOKE, because a restored database has lost it.
    `REVOKE ALL ON FUNCTION auth.purge_audit(integer), auth.audit_administration() FROM PUBLIC`,
    `GRANT EXECUTE ON FUNCTION auth.purge_audit(integer) TO ${role}`,
    `GRANT INSERT, UPDATE, DELETE ON auth.rate_limit TO ${role}`,
    // Quotas of revocations, counts of refusals, recorded snapshots, and the owner of a token.
    `GRANT INSERT, UPDATE, DELETE ON auth.revocation_quota, auth.refusal_count, auth.recorded_snapshot TO ${role}`,
    `GRANT SELECT, UPDATE ON SEQUENCE auth.newest_issue TO ${role}`,
    `REVOKE ALL ON FUNCTION auth.find_issued_token(uuid) FROM PUBLIC`,
    `GRANT EXECUTE ON FUNCTION auth.find_issued_token(uuid) TO ${role}`,
  ],
);

/**
 * Another team owns the store. The service reads it, and may only replace a password hash by a stronger one.
 * @param accounts the table that holds the hashes
 */
function storeSchema(
  name: string,
  accounts: string,
  tables: Pick<PostgresSettings, 'entities' | 'migrations'>,
): ServiceSchema {
  return schema(name, tables, (role) => [
    `GRANT SELECT ON ALL TABLES IN SCHEMA ${name} TO ${role}`,
    `GRANT UPDATE (password_hash) ON ${name}.${accounts} TO ${role}`,
  ]);
}

/** The identity stores' schemas, by the prefix of their variables (`PERSON_DIRECTORY_DATABASE_URL`, …). */
export const STORE_SCHEMAS = {
  PERSON_DIRECTORY: storeSchema('person_directory', 'person', {
    entities: PERSON_DIRECTORY_ENTITIES,
    migrations: [CreatePersonDirectory1764000000100, AddPersonaOfAuthority1796200000000],
  }),
  INTERNAL_LEGACY: storeSchema('internal_legacy', 'internal_user', {
    entities: INTERNAL_LEGACY_ENTITIES,
    migrations: [CreateInternalLegacy1764000000200],
  }),
  SERVICE_PROVIDERS: storeSchema('service_providers', 'technician', {
    entities: SERVICE_PROVIDERS_ENTITIES,
    migrations: [CreateServiceProviders1764000000300, IndexTechnicianNames1796200000100],
  }),
} as const satisfies Record<Store, ServiceSchema>;

/**
 * Every schema, in the order of migration. The service's own schema comes last: its startup check reads only
 * this schema, so a service that passes it finds the others complete.
 */
export const SCHEMAS: readonly ServiceSchema[] = [...Object.values(STORE_SCHEMAS), AUTH_SCHEMA];

/** Runs `work` with one connection to a schema's database. `url` must name the role that owns the tables. */
export async function withOwnerConnection<T>(
  { settings }: ServiceSchema,
  connection: { url: string; applicationName: string },
  work: (dataSource: DataSource) => Promise<T>,
): Promise<T> {
  const dataSource = new DataSource(postgresOptions({ ...settings, ...connection, poolSize: 1 }));
  await dataSource.initialize();
  try {
    return await work(dataSource);
  } finally {
    await dataSource.destroy();
  }
}
