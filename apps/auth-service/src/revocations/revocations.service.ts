import { Injectable } from '@nestjs/common';
import type { Caller } from '@platform/access-tokens';
import { Metrics } from '@platform/service-defaults';
import { HOUR_MS } from '@platform/time';
import type { Entitlement, RevocationKey } from './revocation';
import { canonicalIdentifier, isDated } from './revocation';
import { isNamedOnly } from './revocation-holders';
import { RevocationQuotas } from './revocation-quotas.service';
import { REVOCATION_QUOTAS, RevocationForbidden, RevocationQuotaExceeded } from './revocation-refusal';
import { RevocationRights } from './revocation-rights.service';
import { RevocationsRepository } from './revocations.repository';
import type { IssuedToken } from './revocations.repository';
import { RevokedUsers } from './revoked-users.service';

/** The origin of a revocation request, for the audit trail. */
interface RevocationOrigin {
  address: string | null;
  traceId: string;
}

/** Sets revocations on behalf of callers. */
@Injectable()
export class RevocationsService {
  private readonly revocations;
  private readonly refusals;

  constructor(
    private readonly repository: RevocationsRepository,
    private readonly quotas: RevocationQuotas,
    private readonly rights: RevocationRights,
    private readonly users: RevokedUsers,
    metrics: Metrics,
  ) {
    this.revocations = metrics.counter('auth_revocations_total', 'Revocations set', ['domain']);
    this.refusals = metrics.counter('auth_revocations_refused_total', 'Revocations refused', ['reason']);
    for (const reason of ['not-own', 'service', ...REVOCATION_QUOTAS]) this.refusals.inc({ reason }, 0);
  }

  /**
   * Sets a revocation dated now. Once the promise resolves, the revocation covers every token issued before.
   * @throws {RevocationForbidden}
   * @throws {RevocationQuotaExceeded}
   */
  async revoke(
    { domain, identifier }: RevocationKey,
    caller: Caller,
    origin: RevocationOrigin,
  ): Promise<void> {
    try {
      await this.set({ domain, identifier: canonicalIdentifier(domain, identifier) }, caller, origin);
      this.revocations.inc({ domain });
    } catch (error) {
      if (error instanceof RevocationForbidden) this.refusals.inc({ reason: error.reason });
      if (error instanceof RevocationQuotaExceeded) this.refusals.inc({ reason: error.quota });
      throw error;
    }
  }

  private async set(key: RevocationKey, caller: Caller, origin: RevocationOrigin): Promise<void> {
    const token = key.domain === 'jti' ? await this.repository.findIssued(key.identifier) : null;
    const entitlement = await this.rights.find(key, caller, token);
    if (entitlement === null) throw new RevocationForbidden('not-own');
    const countedClient = await this.count(key, caller, entitlement);
    // The quota is checked first, because `users.find` queries every identity store.
    const { isService, names } = await this.users.find(key, token?.subject ?? null);
    if (isService && entitlement === 'by-policy') throw new RevocationForbidden('service');
    // A revocation by its user or an administrator interrupts sign-ins in progress, because it may concern
    // what they have already checked, e.g. the password. A revocation by any other caller does not interrupt
    // them. Nor does the revocation of an application or a service, because it would interrupt too many
    // sign-ins.
    const interrupts = entitlement !== 'by-policy' && !isService && key.domain !== 'client_id';
    if (isDated(key.domain) && !interrupts) await this.repository.delayRepetition(names);
    await this.repository.put({
      ...key,
      ...origin,
      subject: caller.subject,
      clientId: caller.clientId,
      own: entitlement === 'own',
      countedClient,
      interrupts,
      expiresAt: expiryOf(key, caller, token),
    });
  }

  /**
   * Counts a revocation against the caller's quotas. Returns the application whose quota it counts against,
   * or null. For a technician without an account, own revocations count too, because there may be any number
   * of such technicians. Ending an own session never counts.
   * @throws {RevocationQuotaExceeded}
   */
  private async count(key: RevocationKey, caller: Caller, entitlement: Entitlement): Promise<string | null> {
    const isOwn = entitlement === 'own';
    if (entitlement === 'by-policy' || (isOwn && key.domain !== 'sid' && isNamedOnly(caller.subject)))
      return this.quotas.take(key, caller);
    if (isOwn && key.domain === 'jti') await this.quotas.checkOwn(key, caller);
    return null;
  }
}

/**
 * Returns the expiry of the single token that is revoked, plus one hour for clock skew. Null if it is
 * unknown, or the revocation covers more than one token.
 */
function expiryOf(
  { domain, identifier }: RevocationKey,
  caller: Caller,
  token: IssuedToken | null,
): Date | null {
  if (token !== null) return token.expiresAt;
  const isCallersOwn = domain === 'jti' && identifier === canonicalIdentifier(domain, caller.tokenId);
  return isCallersOwn ? new Date(caller.expiresAt.getTime() + HOUR_MS) : null;
}
