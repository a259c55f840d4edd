import { randomBytes } from 'node:crypto';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { eventually } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import { BACKEND, bearerOf, postTo } from './auth-fixture';

export interface AuditRow {
  flow: string;
  status: number;
  reason: number | null;
  detail: string | null;
  application_key: string | null;
  subject: string | null;
  user_name: string | null;
  address: string | null;
  access_token_id: string | null;
  age_seconds: number;
}

/** The `X-Forwarded-For` address of these tests' requests. */
export const CLIENT_ADDRESS = '203.0.113.9';

export const newTrace = (): string => randomBytes(16).toString('hex');
export const traceparent = (traceId: string): string => `00-${traceId}-${'1'.repeat(16)}-01`;

/** Returns a trust-simple request for Carl. */
export const trusted = (overrides: object = {}): object => ({
  ...BACKEND,
  persona: 2,
  userName: 'carl.customer',
  ...overrides,
});

/**
 * Returns the audit rows of one request. Rows of refusals are written after the response, so this waits for
 * them.
 */
export function auditRowsOf(database: TestDatabase, traceId: string): Promise<AuditRow[]> {
  return eventually(async () => {
    const found = await database.query<AuditRow>(
      `SELECT flow, status, reason, detail, application_key, subject, user_name, host(address) AS address,
         access_token_id, extract(epoch FROM now() - occurred_at)::int AS age_seconds
       FROM auth.token_audit WHERE trace_id = $1`,
      [traceId],
    );
    expect(found.length).toBeGreaterThan(0);
    return found;
  });
}

/** Sends one request to a token endpoint, and returns its response and its only audit row. */
export async function audited(
  app: NestFastifyApplication,
  database: TestDatabase,
  path: string,
  body: object | string | undefined,
  token?: string,
): Promise<{ answer: { status: number; body: Record<string, string> }; row: AuditRow }> {
  const traceId = newTrace();
  const sent = postTo(app, path).set({
    traceparent: traceparent(traceId),
    'X-Forwarded-For': CLIENT_ADDRESS,
  });
  if (typeof body === 'string') void sent.set('Content-Type', 'application/json');
  const answer = await bearerOf(body === undefined ? sent : sent.send(body), token);
  const rows = await auditRowsOf(database, traceId);
  expect(rows).toHaveLength(1);
  expect(rows[0]).toMatchObject({ status: answer.status });
  return { answer: answer, row: rows[0]! };
}
