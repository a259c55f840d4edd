/** SQL: the newest revocation (`at`, null if none) of the person in $1 and the internal user in $2, each a decimal text or
 *  null. For use as a CTE named `revoked`. */
export const NEWEST_USER_REVOCATION = `
  SELECT max(revocation_date) AS at FROM auth.revocation
  WHERE (domain = 'svc-personid' AND identifier = $1) OR (domain = 'internal-legacy' AND identifier = $2)`;

/** SQL: the `iat` of a token issued now, given the CTE `revoked`: one second after the newest revocation of its user if that is
 *  later than now, so that a login right after a revocation works at once. The database's clock decides, as it dates the
 *  revocations too. */
export const ISSUE_INSTANT = `
  SELECT greatest(date_trunc('second', now()), date_trunc('second', at) + interval '1 second') AS issued_at FROM revoked`;

/** The parameters of NEWEST_USER_REVOCATION. */
export function userRevocationParameters(identity: {
  personId: number | null;
  userId: number | null;
}): [string | null, string | null] {
  return [decimal(identity.personId), decimal(identity.userId)];
}

function decimal(identifier: number | null): string | null {
  return identifier === null ? null : String(identifier);
}
