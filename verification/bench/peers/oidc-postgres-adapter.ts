import pg from 'pg';

/** A payload of oidc-provider: the members for lookups, and others. */
interface Payload extends Readonly<Record<string, unknown>> {
  readonly grantId?: string;
  readonly uid?: string;
  readonly userCode?: string;
}

const TABLE = `
  CREATE TABLE IF NOT EXISTS oidc_provider (
    kind text, id text, payload json NOT NULL, grant_id text, uid text, user_code text, expires_at timestamptz, consumed_at bigint,
    PRIMARY KEY (kind, id));
  CREATE INDEX IF NOT EXISTS oidc_provider_grant ON oidc_provider (grant_id) WHERE grant_id IS NOT NULL;
  CREATE INDEX IF NOT EXISTS oidc_provider_uid ON oidc_provider (kind, uid) WHERE uid IS NOT NULL;
  CREATE INDEX IF NOT EXISTS oidc_provider_code ON oidc_provider (kind, user_code) WHERE user_code IS NOT NULL`;

const findBy = (column: string): string =>
  `SELECT payload, consumed_at FROM oidc_provider WHERE kind = $1 AND ${column} = $2 AND (expires_at IS NULL OR expires_at > now())`;

const STATEMENTS = {
  upsert: `
    INSERT INTO oidc_provider (kind, id, payload, grant_id, uid, user_code, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, now() + $7 * interval '1 second')
    ON CONFLICT (kind, id) DO UPDATE SET payload = excluded.payload, grant_id = excluded.grant_id, uid = excluded.uid,
      user_code = excluded.user_code, expires_at = excluded.expires_at`,
  find: findBy('id'),
  findByUid: findBy('uid'),
  findByUserCode: findBy('user_code'),
  consume: 'UPDATE oidc_provider SET consumed_at = extract(epoch FROM now()) WHERE kind = $1 AND id = $2',
  destroy: 'DELETE FROM oidc_provider WHERE kind = $1 AND id = $2',
  revoke: 'DELETE FROM oidc_provider WHERE grant_id = $1',
} as const;

/**
 * Storage for oidc-provider, as its documentation recommends: one indexed table and prepared statements. It
 * has as many connections as auth-service.
 */
export async function openPostgresAdapter(connectionString: string) {
  const pool = new pg.Pool({ connectionString, max: 20 });
  await pool.query(TABLE);
  const run = async (name: keyof typeof STATEMENTS, ...values: unknown[]): Promise<object | undefined> => {
    type Row = { payload: object; consumed_at: string | null };
    const { rows } = await pool.query<Row>({ name, text: STATEMENTS[name], values });
    const [found] = rows;
    if (found === undefined) return undefined;
    return { ...found.payload, ...(found.consumed_at !== null && { consumed: Number(found.consumed_at) }) };
  };
  return class PostgresAdapter {
    readonly #kind: string;

    constructor(kind: string) {
      this.#kind = kind;
    }

    upsert(id: string, payload: Payload, expiresIn?: number) {
      const { grantId, uid, userCode } = payload;
      return run('upsert', this.#kind, id, JSON.stringify(payload), grantId, uid, userCode, expiresIn);
    }

    find = (id: string) => run('find', this.#kind, id);
    findByUid = (uid: string) => run('findByUid', this.#kind, uid);
    findByUserCode = (code: string) => run('findByUserCode', this.#kind, code);
    consume = (id: string) => run('consume', this.#kind, id);
    destroy = (id: string) => run('destroy', this.#kind, id);
    revokeByGrantId = (grantId: string) => run('revoke', grantId);
  };
}
