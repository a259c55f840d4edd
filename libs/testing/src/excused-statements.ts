/**
 * A statement that integration tests need not run with the rights of a service. They must run it as the
 * administrator.
 */
interface ExcusedStatement {
  readonly file: string;
  /** Text that identifies the statement within its file. */
  readonly containing: string;
  readonly because: string;
}

const ADMINISTRATION = 'auth:admin runs it, as the role that owns the tables';
const AUTH = 'apps/auth-service/src';

export const excusedStatements: readonly ExcusedStatement[] = [
  {
    file: `${AUTH}/applications/applications.repository.ts`,
    containing: "'application:'",
    because: ADMINISTRATION,
  },
  {
    file: `${AUTH}/audit/audited-attempts.repository.ts`,
    containing: 'FROM auth.token_audit',
    because: ADMINISTRATION,
  },
  {
    file: `${AUTH}/identity/passwords/password-import.repository.ts`,
    containing: 'password_hash IS NOT NULL AS has',
    because: ADMINISTRATION,
  },
  {
    file: `${AUTH}/identity/passwords/password-import.repository.ts`,
    containing: 'jsonb_to_recordset',
    because: ADMINISTRATION,
  },
  {
    file: `${AUTH}/identity/passwords/password-lockouts.repository.ts`,
    containing: '"lockedUntil"',
    because: ADMINISTRATION,
  },
  {
    file: `${AUTH}/installation/platform-services.ts`,
    containing: 'INSERT INTO internal_legacy.internal_user',
    because: 'the installation runs it, as the role that owns the tables',
  },
  {
    file: `${AUTH}/keys/sealed-secrets.repository.ts`,
    containing: 'count(*)::int AS count',
    because: ADMINISTRATION,
  },
  {
    file: `${AUTH}/keys/sealed-secrets.repository.ts`,
    containing: 'AS purpose',
    because: ADMINISTRATION,
  },
  {
    file: `${AUTH}/keys/sealed-secrets.repository.ts`,
    containing: 'json_array_elements_text',
    because: ADMINISTRATION,
  },
  {
    file: `${AUTH}/keys/signing-keys.repository.ts`,
    containing: 'FOR UPDATE',
    because: ADMINISTRATION,
  },
];
