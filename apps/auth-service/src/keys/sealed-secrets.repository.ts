import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';

/** Where sealed secrets are kept, and what the secret of a row is bound to. */
interface SealedColumn {
  readonly table: string;
  readonly column: string;
  /**
   * The row's primary key as an array of text, as an SQL expression. It stays while the row's version
   * changes.
   */
  readonly key: string;
  /** The row's `purpose` when it was sealed, as an SQL expression. */
  readonly purpose: string;
  /** Which row it is, for messages, as an SQL expression. */
  readonly label: string;
  /** Whether the service will need the secret again, as an SQL expression. */
  readonly isNeeded: string;
}

/** Every column that a `SecretBox` wrote. */
const SEALED_COLUMNS = {
  'application secrets': {
    table: 'auth.application_secret',
    column: 'ciphertext',
    key: `ARRAY[application_key, version::text]`,
    purpose: `'application:' || application_key`,
    label: `'application:' || application_key || ' version ' || version`,
    // Beside a secret that can be opened, one that cannot is logged and counted when it is used, and ends
    // nothing.
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
    // They last minutes, and a new one can be begun.
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

/** Which secrets a walk visits: all, or those that do not begin with a prefix. */
export interface SealedChoice {
  readonly kind: SealedKind;
  readonly exceptPrefix: Buffer | null;
}

/** Reads sealed secrets, and moves them from one key to another. */
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

  /** Some secrets in the order of their keys, after `after`; from the start unless given. */
  find({ kind, exceptPrefix }: SealedChoice, after: string[] | null, limit: number): Promise<SealedSecret[]> {
    const { table, column, key, purpose, label } = SEALED_COLUMNS[kind];
    return this.dataSource.query<SealedSecret[]>(
      `SELECT ${key} AS key, ${purpose} AS purpose, ${label} AS label, ${column} AS sealed FROM ${table}
       WHERE ($2::text[] IS NULL OR ${key} > $2) AND ${isChosen(column)} ORDER BY ${key} LIMIT $3`,
      [exceptPrefix, after, limit],
    );
  }

  /**
   * Replaces secrets, all or none. One that somebody has changed or removed since it was read stays as it is.
   * @returns how many were replaced
   */
  async replace(
    kind: SealedKind,
    secrets: readonly (SealedSecret & { resealed: Buffer })[],
  ): Promise<number> {
    const { table, column, key } = SEALED_COLUMNS[kind];
    // Hand-written SQL: one statement for a batch. Keys travel as JSON, because an array of arrays would be
    // one array.
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
   * What is sealed with keys that are not in `keyIds` although the service will need it. A secret of unknown
   * form names no key.
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

/** A row with a secret that does not begin with $1; with any secret where that is null. */
function isChosen(column: string): string {
  return `${column} IS NOT NULL
    AND ($1::bytea IS NULL OR substring(${column} FROM 1 FOR length($1::bytea)) <> $1::bytea)`;
}

/** The id of the key that a secret was sealed with; null for none or an unknown form. */
function keyIdOf(column: string): string {
  return `CASE WHEN length(${column}) < 2 THEN NULL
    WHEN get_byte(${column}, 0) = 1 THEN '1'
    WHEN get_byte(${column}, 0) = 2
      THEN convert_from(substring(${column} FROM 3 FOR get_byte(${column}, 1)), 'LATIN1') END`;
}
