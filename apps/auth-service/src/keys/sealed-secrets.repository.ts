import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';

/** A column with sealed secrets. The members `key` to `isNeeded` are SQL expressions over a row. */
interface SealedColumn {
  readonly table: string;
  readonly column: string;
  /** The row's primary key as an array of text. An update of the row does not change it. */
  readonly key: string;
  /** The purpose for which the secret was sealed. */
  readonly purpose: string;
  /** The name of the row in messages. */
  readonly label: string;
  /** True if the service still needs the secret. */
  readonly isNeeded: string;
}

/** Every column that holds secrets of a `SecretBox`. */
const SEALED_COLUMNS = {
  'application secrets': {
    table: 'auth.application_secret',
    column: 'ciphertext',
    key: `ARRAY[application_key, version::text]`,
    purpose: `'application:' || application_key`,
    label: `'application:' || application_key || ' version ' || version`,
    // A secret that cannot be opened is not needed if the application has another live secret that can. An
    // attempt to use the unreadable one is only logged and counted.
    isNeeded: `(expires_at IS NULL OR expires_at > now()) AND NOT EXISTS (
      SELECT FROM auth.application_secret AS other
      WHERE other.application_key = stored.application_key AND (other.expires_at IS NULL OR other.expires_at > now())
        AND ${keyIdOf('other.ciphertext')} = ANY ($1))`,
  },
  'signing keys': {
    table: 'auth.signing_key',
    column: 'private_ciphertext',
    key: `ARRAY[kid]`,
    purpose: `'signing-key:' || kid`,
    label: `'signing-key:' || kid`,
    isNeeded: `state IN ('next', 'active')`,
  },
  'sign-ins under way': {
    table: 'auth.openid_sign_in',
    column: 'sealed_secrets',
    key: `ARRAY[encode(state_hash, 'hex')]`,
    purpose: `'openid-sign-in:' || rtrim(translate(encode(state_hash, 'base64'), '+/', '-_'), '=')`,
    label: `'openid-sign-in:' || encode(state_hash, 'hex')`,
    // A sign-in lasts minutes, and the user can start a new one.
    isNeeded: 'false',
  },
} as const satisfies Record<string, SealedColumn>;

export type SealedKind = keyof typeof SEALED_COLUMNS;

export const SEALED_KINDS = Object.keys(SEALED_COLUMNS) as SealedKind[];

export interface SealedSecret {
  key: string[];
  purpose: string;
  label: string;
  sealed: Buffer;
}

/** A selection of secrets: all of a kind, or those that do not start with `exceptPrefix`. */
export interface SealedChoice {
  readonly kind: SealedKind;
  readonly exceptPrefix: Buffer | null;
}

/** Reads sealed secrets, and replaces them when they are re-encrypted with another key. */
@Injectable()
export class SealedSecretsRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  async count({ kind, exceptPrefix }: SealedChoice): Promise<number> {
    const { table, column } = SEALED_COLUMNS[kind];
    const [row] = await this.dataSource.query<{ count: number }[]>(
      `SELECT count(*)::int AS count FROM ${table} WHERE ${isChosen(column)}`,
      [exceptPrefix],
    );
    return row!.count;
  }

  /**
   * Returns up to `limit` secrets in the order of their row keys, starting after `after`; null: from the
   * start.
   */
  find({ kind, exceptPrefix }: SealedChoice, after: string[] | null, limit: number): Promise<SealedSecret[]> {
    const { table, column, key, purpose, label } = SEALED_COLUMNS[kind];
    return this.dataSource.query<SealedSecret[]>(
      `SELECT ${key} AS key, ${purpose} AS purpose, ${label} AS label, ${column} AS sealed FROM ${table}
       WHERE ($2::text[] IS NULL OR ${key} > $2) AND ${isChosen(column)} ORDER BY ${key} LIMIT $3`,
      [exceptPrefix, after, limit],
    );
  }

  /**
   * Replaces secrets in one statement. Skips those that have been changed or deleted since they were read.
   * @returns the number of replaced secrets
   */
  async replace(
    kind: SealedKind,
    secrets: readonly (SealedSecret & { resealed: Buffer })[],
  ): Promise<number> {
    const { table, column, key } = SEALED_COLUMNS[kind];
    // Hand-written SQL: one statement for a batch. Row keys are sent as JSON, because unnest flattens an
    // array of arrays.
    const [, affected] = await this.dataSource.query<[unknown, number]>(
      `UPDATE ${table} AS stored SET ${column} = new.resealed
       FROM unnest($1::json[], $2::bytea[], $3::bytea[]) AS new (key, sealed, resealed)
       WHERE ${key} = ARRAY(SELECT json_array_elements_text(new.key)) AND stored.${column} = new.sealed`,
      [
        secrets.map((secret) => JSON.stringify(secret.key)),
        secrets.map(({ sealed }) => sealed),
        secrets.map(({ resealed }) => resealed),
      ],
    );
    return affected;
  }

  /**
   * Finds secrets that the service still needs but that are sealed with a key outside `keyIds`; at most 100
   * per kind. Ignores secrets of unknown form, whose key is unknown.
   */
  async findSealedWithOthers(keyIds: readonly string[]): Promise<{ keyId: string; label: string }[]> {
    const found: { keyId: string; label: string }[] = [];
    for (const kind of SEALED_KINDS) {
      const { table, column, label, isNeeded } = SEALED_COLUMNS[kind];
      found.push(
        ...(await this.dataSource.query<{ keyId: string; label: string }[]>(
          `SELECT ${keyIdOf(column)} AS "keyId", ${label} AS label FROM ${table} AS stored
           WHERE ${keyIdOf(column)} <> ALL ($1) AND ${isNeeded} ORDER BY label LIMIT 100`,
          [keyIds],
        )),
      );
    }
    return found;
  }
}

/** SQL: true for a row whose secret does not start with $1, or for any secret if $1 is null. */
function isChosen(column: string): string {
  return `${column} IS NOT NULL
    AND ($1::bytea IS NULL OR substring(${column} FROM 1 FOR length($1::bytea)) <> $1::bytea)`;
}

/** SQL: the id of the key that sealed a secret; null if there is no secret or its form is unknown. */
function keyIdOf(column: string): string {
  return `CASE WHEN length(${column}) < 2 THEN NULL
    WHEN get_byte(${column}, 0) = 1 THEN '1'
    WHEN get_byte(${column}, 0) = 2
      THEN convert_from(substring(${column} FROM 3 FOR get_byte(${column}, 1)), 'LATIN1') END`;
}
