import { eventually } from '@platform/testing';
import { Client } from 'pg';
import { BACKEND, startAuthService, type AuthFixture } from './auth-fixture';

/**
 * Two tables that a request's statement locks in this order. A migration may lock them in the opposite order.
 */
const STATEMENTS = [
  ['a refresh', 'auth.refresh_token', 'auth.token_audit'],
  ['a sign-in', 'auth.refresh_token', 'auth.token_audit'],
] as const;

interface Answer {
  readonly status: number;
  readonly refreshToken: string;
}

describe('a statement that PostgreSQL aborts to break a deadlock', () => {
  let service: AuthFixture;
  let reader: Client;
  let migration: Client;
  beforeAll(async () => {
    service = await startAuthService();
    const connectionString = service.database.ownerUrl;
    reader = new Client({ connectionString });
    migration = new Client({ connectionString });
    await Promise.all([reader.connect(), migration.connect()]);
  });
  afterAll(async () => {
    await Promise.all([reader.end(), migration.end()]);
    await service.stop();
  });

  const signIn = async (): Promise<Answer> => {
    const user = { persona: 2, userName: 'carl.customer' };
    const { status, body } = await service.post('/auth/token/trust-simple', { ...BACKEND, ...user });
    return { status, refreshToken: body.refreshToken };
  };
  const refresh = async (refreshToken: string): Promise<Answer> => {
    const { status, body } = await service.post('/auth/token/refresh', { refreshToken });
    return { status, refreshToken: body.refreshToken };
  };

  const waitForWaiting = (count: number): Promise<void> =>
    eventually(async () => {
      const [row] = await service.database.query<{ waiting: number }>(
        `SELECT count(*)::int AS waiting FROM pg_locks
         WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      );
      expect(row?.waiting).toBe(count);
    });

  /** Returns true if PostgreSQL aborted the request's statement, false if it aborted the migration. */
  async function meetInDeadlock([first, then]: readonly [string, string], send: () => Promise<Answer>) {
    await reader.query(`BEGIN; LOCK TABLE ${then} IN ROW EXCLUSIVE MODE`);
    await migration.query('BEGIN');
    const lock = migration.query(`LOCK TABLE ${then} IN SHARE MODE`);
    await waitForWaiting(1);
    const request = send();
    await waitForWaiting(2);
    await reader.query('COMMIT');
    await lock;
    const isLocked = await migration.query(`LOCK TABLE ${first} IN SHARE MODE`).then(
      () => true,
      (error: unknown) => {
        expect(error).toMatchObject({ code: '40P01' });
        return false;
      },
    );
    await migration.query('ROLLBACK');
    expect((await request).status).toBe(200);
    return isLocked;
  }

  it.each(STATEMENTS)(
    'is retried: %s',
    async (what, ...tables) => {
      const { refreshToken } = await signIn();
      let token = refreshToken;
      const send = async (): Promise<Answer> => {
        const answer = what === 'a refresh' ? await refresh(token) : await signIn();
        token = answer.refreshToken;
        return answer;
      };
      // PostgreSQL aborts the session that first checks for a deadlock, 1 s after it began to wait. On a busy
      // machine that may be the migration, so this repeats until it is the request.
      while (!(await meetInDeadlock(tables, send)));
    },
    60_000,
  );
});
