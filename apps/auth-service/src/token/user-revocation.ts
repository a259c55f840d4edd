/** SQL: the newest revocation (`at`, null if none) of the person and the internal user that two expressions name as decimal texts or
 *  nulls. For use as a lateral sub-query. */
export function newestUserRevocation(personId: string, userId: string): string {
  return `
  SELECT max(revocation_date) AS at FROM auth.revocation
  WHERE (domain = 'svc-personid' AND identifier = ${personId}) OR (domain = 'internal-legacy' AND identifier = ${userId})`;
}

/** SQL: the `iat` of a token issued now: one second after the newest revocation of its user, `revoked.at`, if that is
 *  later than now, so that a login right after a revocation works at once. The database's clock decides, as it dates the
 *  revocations too. */
export const ISSUE_INSTANT = `
  greatest(date_trunc('second', now()), date_trunc('second', revoked.at) + interval '1 second')`;
