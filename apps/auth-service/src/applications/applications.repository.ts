import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { batched, inTransaction, listParameter, readPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import { DataSource, In } from 'typeorm';
import type { EntityManager } from 'typeorm';
import { LIVE_SECRETS } from './application';
import type { Application, SecretChange } from './application';
import { ApplicationEntity, ApplicationSecretEntity } from './application.entity';

/** An enabled application. Its live secrets are sealed, newest first. */
export interface EnabledApplication extends Application {
  sealedSecrets: Buffer[];
}

/** An application as administrators see it; the secrets themselves stay sealed. */
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
  /** Whether it is accepted at present. */
  isLive: boolean;
}

/** What `changeSecrets` did. */
export interface ChangedSecrets {
  /** Number of the version that was added, or null. */
  added: number | null;
  expired: { version: number; expiresAt: Date }[];
}

// Hot: almost every token request reads its application.
const FIND_ENABLED: PreparedStatement = {
  name: 'find-applications',
  text: `
  SELECT a.application_key AS "applicationKey", a.allowed_personas AS "allowedPersonas",
    a.allow_refresh AS "allowRefresh", a.allowed_flows AS "allowedFlows",
    a.allowed_subjects AS "allowedSubjects",
    ARRAY(
      SELECT s.ciphertext FROM auth.application_secret s
      WHERE s.application_key = a.application_key AND (s.expires_at IS NULL OR s.expires_at > now())
      ORDER BY s.version DESC LIMIT ${String(LIVE_SECRETS)}
    ) AS "sealedSecrets"
  FROM auth.application a
  WHERE a.application_key = ANY (${listParameter(1, 'text')}) AND a.enabled`,
};

/** Whether a secret has not expired, by the database's clock. */
const UNEXPIRED = '(secret.expires_at IS NULL OR secret.expires_at > now())';

/** Every statement on applications and their secrets. */
@Injectable()
export class ApplicationsRepository {
  /** The enabled application with this key, or null. Its secrets stay sealed. Concurrent calls share a statement. */
  readonly findEnabled: (applicationKey: string) => Promise<EnabledApplication | null>;

  constructor(@InjectDataSource() private readonly dataSource: DataSource) {
    this.findEnabled = batched((keys) => this.findAllEnabled(keys));
  }

  private async findAllEnabled(applicationKeys: readonly string[]): Promise<(EnabledApplication | null)[]> {
    const rows = await readPrepared<EnabledApplication>(this.dataSource, FIND_ENABLED, [applicationKeys]);
    const byKey = new Map(rows.map((row) => [row.applicationKey, row]));
    return applicationKeys.map((key) => byKey.get(key) ?? null);
  }

  /** Every application, disabled ones included, by key. Secrets are listed from the oldest. */
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
    // A secret is live while fewer than LIVE_SECRETS newer ones are unexpired: a window function, which finders cannot express.
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

  /** Registers an application with its first secret. @returns false, and nothing changed, when the key is taken */
  create(application: Application, sealedSecret: Buffer): Promise<boolean> {
    const { applicationKey } = application;
    return inTransaction(this.dataSource, 'READ COMMITTED', async (manager) => {
      const created = await manager
        .createQueryBuilder()
        .insert()
        .into(ApplicationEntity)
        .values(rowOf(application))
        .orIgnore()
        .returning('application_key')
        .updateEntity(false)
        .execute();
      if ((created.raw as unknown[]).length === 0) return false;
      await insertSecret(manager, applicationKey, 1, sealedSecret);
      return true;
    });
  }

  /** Changes what an application may do, or whether it is enabled. @returns false when there is none with this key */
  async update(
    applicationKey: string,
    change: Partial<Omit<ApplicationEntity, 'applicationKey' | 'createdAt'>>,
  ): Promise<boolean> {
    const { affected } = await this.dataSource
      .getRepository(ApplicationEntity)
      .update({ applicationKey }, change);
    return affected === 1;
  }

  /** Changes an application's secrets in one transaction, while nobody else can change them.
   *  @param decide gets the unexpired versions, newest first, or null when there is no such application; what it throws undoes everything */
  changeSecrets(
    applicationKey: string,
    decide: (unexpiredVersions: readonly number[] | null) => SecretChange,
  ): Promise<ChangedSecrets> {
    return inTransaction(this.dataSource, 'READ COMMITTED', async (manager) => {
      // The application's row is the lock: the next version depends on those there are.
      const application = await manager.findOne(ApplicationEntity, {
        where: { applicationKey },
        lock: { mode: 'pessimistic_write' },
      });
      const { add, expire } = decide(application && (await unexpiredVersions(manager, applicationKey)));
      const added = add && (await addSecret(manager, applicationKey, add));
      const expired: ChangedSecrets['expired'] = [];
      for (const { versions, inSeconds } of expire)
        expired.push(...(await expireSecrets(manager, applicationKey, versions, inSeconds)));
      return { added, expired };
    });
  }

  /** Registers the application as given, with this as its only secret, whatever was there before. For development. */
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

async function unexpiredVersions(manager: EntityManager, applicationKey: string): Promise<number[]> {
  const secrets = await manager
    .createQueryBuilder(ApplicationSecretEntity, 'secret')
    .where({ applicationKey })
    .andWhere(UNEXPIRED)
    .orderBy('secret.version', 'DESC')
    .getMany();
  return secrets.map(({ version }) => version);
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

/** The instants are the database's. */
async function expireSecrets(
  manager: EntityManager,
  applicationKey: string,
  versions: readonly number[],
  inSeconds: number,
): Promise<ChangedSecrets['expired']> {
  if (versions.length === 0) return [];
  const updated = await manager
    .createQueryBuilder()
    .update(ApplicationSecretEntity)
    .set({ expiresAt: () => `now() + :inSeconds * interval '1 second'` })
    .setParameter('inSeconds', inSeconds)
    .where({ applicationKey, version: In([...versions]) })
    .returning(['version', 'expiresAt'])
    .execute();
  return (updated.raw as { version: number; expires_at: Date }[])
    .map(({ version, expires_at: expiresAt }) => ({ version, expiresAt }))
    .toSorted((one, other) => one.version - other.version);
}
