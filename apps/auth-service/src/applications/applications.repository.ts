import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { batched, inTransaction, listParameter, readPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import { DataSource, In } from 'typeorm';
import type { EntityManager } from 'typeorm';
import { LIVE_SECRETS } from './application';
import type { Application, SecretChange, UnexpiredSecret } from './application';
import { ApplicationEntity, ApplicationSecretEntity } from './application.entity';

/** An enabled application with its live secrets, still sealed, newest first. */
export interface EnabledApplication extends Application {
  sealedSecrets: Buffer[];
  /** The versions of the secrets, in the order of `sealedSecrets`. */
  secretVersions: number[];
  /** The database's time at the start of the statement that read the application. */
  readAt: Date;
}

/** An application as administrators see it, without the secrets themselves. */
export interface ListedApplication extends Application {
  returnUrls: readonly string[];
  enabled: boolean;
  createdAt: Date;
  secrets: ListedSecret[];
}

/** One version of an application's secret. Instants are ISO 8601 text. */
interface ListedSecret {
  version: number;
  createdAt: string;
  expiresAt: string | null;
  /** Whether the secret is currently accepted. */
  isLive: boolean;
}

/** The result of `changeSecrets`. */
export interface ChangedSecrets {
  /** The version that was added, or null. */
  added: number | null;
  expired: { version: number; expiresAt: Date }[];
}

// Hot: almost every token request reads its application.
const FIND_ENABLED: PreparedStatement = {
  name: 'find-applications',
  text: `
  SELECT a.application_key AS "applicationKey", a.allowed_personas AS "allowedPersonas",
    a.allow_administrators AS "allowAdministrators", a.allow_refresh AS "allowRefresh", a.allowed_flows AS "allowedFlows",
    a.allowed_subjects AS "allowedSubjects", a.confidential,
    live."sealedSecrets", live."secretVersions", now() AS "readAt"
  FROM auth.application a CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(ciphertext), '{}') AS "sealedSecrets", coalesce(array_agg(version), '{}') AS "secretVersions"
    FROM (
      SELECT ciphertext, version FROM auth.application_secret s
      WHERE s.application_key = a.application_key AND (s.expires_at IS NULL OR s.expires_at > now())
      ORDER BY version DESC LIMIT ${String(LIVE_SECRETS)}) AS newest) AS live
  WHERE a.application_key = ANY (${listParameter(1, 'text')}) AND a.enabled`,
};

/** SQL condition: the secret has not expired, by the database's clock. */
const UNEXPIRED = '(secret.expires_at IS NULL OR secret.expires_at > now())';

/**
 * Applications and their secrets. Other code with SQL on these tables: `keys/sealed-secrets.repository` seals
 * secrets anew, and the repositories of refresh sessions and sign-on codes read `auth.application`.
 */
@Injectable()
export class ApplicationsRepository {
  /**
   * Returns the enabled application with this key, or null. Its secrets stay sealed. Concurrent calls share a
   * statement.
   */
  readonly findEnabled: (applicationKey: string) => Promise<EnabledApplication | null>;

  constructor(@InjectDataSource() private readonly dataSource: DataSource) {
    this.findEnabled = batched((keys) => this.findAllEnabled(keys));
  }

  private async findAllEnabled(applicationKeys: readonly string[]): Promise<(EnabledApplication | null)[]> {
    const rows = await readPrepared<EnabledApplication>(this.dataSource, FIND_ENABLED, [applicationKeys]);
    const byKey = new Map(rows.map((row) => [row.applicationKey, row]));
    return applicationKeys.map((key) => byKey.get(key) ?? null);
  }

  /** Returns every application, including disabled ones, ordered by key. Secrets are ordered oldest first. */
  async list(): Promise<ListedApplication[]> {
    const [applications, secrets] = await Promise.all([
      this.dataSource.getRepository(ApplicationEntity).find({ order: { applicationKey: 'ASC' } }),
      this.listSecrets(),
    ]);
    return applications.map((application) => ({
      ...application,
      secrets: secrets
        .filter(({ applicationKey }) => applicationKey === application.applicationKey)
        .map(({ version, createdAt, expiresAt, isLive }) => ({ version, createdAt, expiresAt, isLive })),
    }));
  }

  private listSecrets(): Promise<(ListedSecret & { applicationKey: string })[]> {
    // A secret is live while fewer than LIVE_SECRETS newer secrets are unexpired. That needs a window
    // function, which TypeORM's find methods cannot express.
    const newerUnexpired = `count(*) FILTER (WHERE ${UNEXPIRED}) OVER (PARTITION BY secret.application_key
      ORDER BY secret.version DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)`;
    return this.dataSource
      .createQueryBuilder(ApplicationSecretEntity, 'secret')
      .select('secret.application_key', 'applicationKey')
      .addSelect('secret.version', 'version')
      .addSelect('to_json(secret.created_at)', 'createdAt')
      .addSelect('to_json(secret.expires_at)', 'expiresAt')
      .addSelect(`${UNEXPIRED} AND ${newerUnexpired} < ${String(LIVE_SECRETS)}`, 'isLive')
      .orderBy('secret.version')
      .getRawMany();
  }

  /**
   * Registers an application with its first secret.
   * @param beforeCommit rolls everything back if it throws
   * @returns null on success. If an application already has this key in any letter case: its key, and nothing
   * is changed
   */
  create(
    application: Application,
    sealedSecret: Buffer,
    beforeCommit: () => Promise<void> = () => Promise.resolve(),
  ): Promise<string | null> {
    const { applicationKey } = application;
    return inTransaction(this.dataSource, 'READ COMMITTED', async (manager) => {
      // No index covers keys that differ only in letter case, so this lock serialises their creation.
      await manager.query(`SELECT pg_advisory_xact_lock(hashtextextended('application:' || lower($1), 0))`, [
        applicationKey,
      ]);
      const taken = await manager
        .createQueryBuilder(ApplicationEntity, 'application')
        .where('lower(application.application_key) = lower(:applicationKey)', { applicationKey })
        .getOne();
      if (taken !== null) return taken.applicationKey;
      await manager.insert(ApplicationEntity, rowOf(application));
      await insertSecret(manager, applicationKey, 1, sealedSecret);
      await beforeCommit();
      return null;
    });
  }

  /**
   * Changes an application's permissions or enables or disables it.
   * @returns false if no application has this key
   */
  async update(
    applicationKey: string,
    change: Partial<Omit<ApplicationEntity, 'applicationKey' | 'createdAt'>>,
  ): Promise<boolean> {
    const { affected } = await this.dataSource
      .getRepository(ApplicationEntity)
      .update({ applicationKey }, change);
    return affected === 1;
  }

  /**
   * Changes an application's secrets in one transaction that locks the application.
   * @param decide receives the unexpired secrets, newest first, or null if the application is unknown. Rolls
   * everything back if it throws
   * @param beforeCommit runs after the changes. Rolls everything back if it throws
   */
  changeSecrets(
    applicationKey: string,
    decide: (unexpired: readonly UnexpiredSecret[] | null) => SecretChange,
    beforeCommit: (changed: ChangedSecrets) => Promise<void> = () => Promise.resolve(),
  ): Promise<ChangedSecrets> {
    return inTransaction(this.dataSource, 'READ COMMITTED', async (manager) => {
      // Locks the application's row, because the next version number depends on the existing ones.
      const application = await manager.findOne(ApplicationEntity, {
        where: { applicationKey },
        lock: { mode: 'pessimistic_write' },
      });
      const { add, expire } = decide(application && (await findUnexpired(manager, applicationKey)));
      const added = add && (await addSecret(manager, applicationKey, add));
      const expired: ChangedSecrets['expired'] = [];
      for (const expiry of expire) expired.push(...(await expireSecrets(manager, applicationKey, expiry)));
      await beforeCommit({ added, expired });
      return { added, expired };
    });
  }

  /**
   * Deletes one version of an application's secret.
   * @param decide receives the sealed secret, or null if there is no such version. Rolls everything back if
   * it throws
   */
  removeSecret(
    applicationKey: string,
    version: number,
    decide: (sealed: Buffer | null) => void,
  ): Promise<void> {
    return inTransaction(this.dataSource, 'READ COMMITTED', async (manager) => {
      const secret = await manager
        .createQueryBuilder(ApplicationSecretEntity, 'secret')
        .addSelect('secret.ciphertext')
        .where({ applicationKey, version })
        .setLock('pessimistic_write')
        .getOne();
      decide(secret?.ciphertext ?? null);
      await manager.delete(ApplicationSecretEntity, { applicationKey, version });
    });
  }

  /** Creates or overwrites the application, with this secret as its only one. For development. */
  replace(
    application: Application & Pick<ListedApplication, 'returnUrls'>,
    sealedSecret: Buffer,
  ): Promise<void> {
    const { applicationKey, returnUrls } = application;
    return inTransaction(this.dataSource, 'READ COMMITTED', async (manager) => {
      const row = { ...rowOf(application), returnUrls: [...returnUrls], enabled: true };
      await manager.upsert(ApplicationEntity, row, ['applicationKey']);
      await manager.delete(ApplicationSecretEntity, { applicationKey });
      await insertSecret(manager, applicationKey, 1, sealedSecret);
    });
  }
}

function rowOf(application: Application): Omit<ApplicationEntity, 'enabled' | 'createdAt' | 'returnUrls'> {
  const { allowedFlows, allowedSubjects } = application;
  return {
    ...application,
    allowedFlows: [...allowedFlows],
    allowedSubjects: allowedSubjects && [...allowedSubjects],
  };
}

function findUnexpired(manager: EntityManager, applicationKey: string): Promise<UnexpiredSecret[]> {
  return manager
    .createQueryBuilder(ApplicationSecretEntity, 'secret')
    .select('secret.version', 'version')
    .addSelect('extract(epoch FROM secret.expires_at - now())::float8', 'secondsLeft')
    .where({ applicationKey })
    .andWhere(UNEXPIRED)
    .orderBy('secret.version', 'DESC')
    .getRawMany<UnexpiredSecret>();
}

async function addSecret(
  manager: EntityManager,
  applicationKey: string,
  sealedSecret: Buffer,
): Promise<number> {
  const newest = await manager.maximum(ApplicationSecretEntity, 'version', { applicationKey });
  const version = (newest ?? 0) + 1;
  await insertSecret(manager, applicationKey, version, sealedSecret);
  return version;
}

async function insertSecret(
  manager: EntityManager,
  applicationKey: string,
  version: number,
  ciphertext: Buffer,
): Promise<void> {
  await manager.insert(ApplicationSecretEntity, { applicationKey, version, ciphertext });
}

/** Expires versions at instants of the database's clock. */
async function expireSecrets(
  manager: EntityManager,
  applicationKey: string,
  { versions, inSeconds, postpones = false }: SecretChange['expire'][number],
): Promise<ChangedSecrets['expired']> {
  if (versions.length === 0) return [];
  const updated = await manager
    .createQueryBuilder()
    .update(ApplicationSecretEntity)
    .set({
      expiresAt: () =>
        `least(now() + :inSeconds * interval '1 second', CASE WHEN NOT :postpones THEN expires_at END)`,
    })
    .setParameters({ inSeconds, postpones })
    .where({ applicationKey, version: In([...versions]) })
    .returning(['version', 'expiresAt'])
    .execute();
  return (updated.raw as { version: number; expires_at: Date }[])
    .map(({ version, expires_at: expiresAt }) => ({ version, expiresAt }))
    .toSorted((one, other) => one.version - other.version);
}
