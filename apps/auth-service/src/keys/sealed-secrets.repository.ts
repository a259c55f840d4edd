import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';

/** Where sealed secrets are kept, and what the secret of a row is bound to. */
interface SealedColumn {
  readonly table: string;
  readonly column: string;
  /** The row's `purpose` when it was sealed, as an SQL expression. */
  readonly purpose: string;
}

/** Every column that a `SecretBox` wrote. */
export const SEALED_COLUMNS = {
  'application secrets': {
    table: 'auth.application_secret',
    column: 'ciphertext',
    purpose: `'application:' || application_key`,
  },
  'signing keys': {
    table: 'auth.signing_key',
    column: 'private_ciphertext',
    purpose: `'signing-key:' || kid`,
  },
  'sign-ins under way': {
    table: 'auth.openid_sign_in',
    column: 'sealed_secrets',
    purpose: `'openid-sign-in:' || rtrim(translate(encode(state_hash, 'base64'), '+/', '-_'), '=')`,
  },
} as const satisfies Record<string, SealedColumn>;

export type SealedKind = keyof typeof SEALED_COLUMNS;

export interface SealedSecret {
  /** Address of the row's present version. */
  ctid: string;
  purpose: string;
  sealed: Buffer;
}

/** Moves sealed secrets from one key to another. */
@Injectable()
export class SealedSecretsRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** How many secrets do not begin with `prefix`. */
  async count(kind: SealedKind, prefix: Buffer): Promise<number> {
    const { table, column } = SEALED_COLUMNS[kind];
    const [row] = await this.dataSource.query<{ count: number }[]>(
      `SELECT count(*)::int AS count FROM ${table} WHERE ${differs(column)}`,
      [prefix],
    );
    return row!.count;
  }

  /** Some secrets that do not begin with `prefix`, in the order of the table, after `after` (ctid). */
  // By hand: a batch is found by its place in the table, so that each reads on where the one before has stopped.
  find(kind: SealedKind, prefix: Buffer, after: string, limit: number): Promise<SealedSecret[]> {
    const { table, column, purpose } = SEALED_COLUMNS[kind];
    return this.dataSource.query<SealedSecret[]>(
      `SELECT ctid::text, ${purpose} AS purpose, ${column} AS sealed FROM ${table}
       WHERE ctid > $2::tid AND ${differs(column)} ORDER BY ctid LIMIT $3`,
      [prefix, after, limit],
    );
  }

  /** Replaces secrets, all or none. One that somebody has changed or removed since it was read stays as it is.
   *  @returns how many were replaced */
  async replace(
    kind: SealedKind,
    secrets: readonly (SealedSecret & { resealed: Buffer })[],
  ): Promise<number> {
    const { table, column } = SEALED_COLUMNS[kind];
    // By hand: one statement for a batch.
    const [, affected] = await this.dataSource.query<[unknown, number]>(
      `UPDATE ${table} AS stored SET ${column} = new.resealed
       FROM unnest($1::tid[], $2::bytea[], $3::bytea[]) AS new (ctid, sealed, resealed)
       WHERE stored.ctid = new.ctid AND stored.${column} = new.sealed`,
      [
        secrets.map(({ ctid }) => ctid),
        secrets.map(({ sealed }) => sealed),
        secrets.map(({ resealed }) => resealed),
      ],
    );
    return affected;
  }
}

/** A row whose secret does not begin with $1. */
function differs(column: string): string {
  return `${column} IS NOT NULL AND substring(${column} FROM 1 FOR length($1::bytea)) <> $1::bytea`;
}
