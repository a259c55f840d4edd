import { Inject, Injectable } from '@nestjs/common';
import type { Caller } from '@platform/access-tokens';
import { Metrics } from '@platform/service-defaults';
import { HOUR_MS } from '@platform/time';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { SessionsRepository } from '../sessions/sessions.repository';
import type { Entitlement, RevocationKey } from './revocation';
import { canonicalIdentifier, entitlementOf, isDated } from './revocation';
import { RevocationQuotas } from './revocation-quotas.service';
import { RevocationForbidden, RevocationQuotaExceeded } from './revocation-refusal';
import { RevocationsRepository } from './revocations.repository';
import type { IssuedToken } from './revocations.repository';
import { ServiceSubjects } from './service-subjects.service';

/** Where a request to revoke comes from. */
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
    private readonly sessions: SessionsRepository,
    private readonly services: ServiceSubjects,
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
    metrics: Metrics,
  ) {
    this.revocations = metrics.counter('auth_revocations_total', 'Revocations set', ['domain']);
    this.refusals = metrics.counter('auth_revocations_refused_total', 'Revocations refused', ['reason']);
    for (const reason of ['not-own', 'service', 'per-minute', 'live', 'own-live'])
      this.refusals.inc({ reason }, 0);
  }

  /** Revokes now. When this resolves, the revocation covers every token that was issued before.
   *  @throws {RevocationForbidden} @throws {RevocationQuotaExceeded} */
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
    const entitlement = await this.entitlement(key, caller, token);
    if (entitlement === null) throw new RevocationForbidden('not-own');
    if (entitlement === 'by-policy') await this.quotas.take(key, caller.subject);
    if (entitlement === 'own' && key.domain === 'jti') await this.quotas.checkOwn(key, caller.subject);
    // After the quota, because it asks the identity stores.
    const isService = await this.services.include(key, token?.subject ?? null);
    if (isService && entitlement === 'by-policy') throw new RevocationForbidden('service');
    // A revocation by its user or an administrator ends sign-ins under way: they may rest on what it revokes. One by anybody else does not. Nor
    // does one of an application or of a service: too many would lose their sign-in.
    const interrupts = entitlement !== 'by-policy' && !isService && key.domain !== 'client_id';
    if (isDated(key.domain) && !interrupts) await this.repository.awaitTurn(key);
    await this.repository.put({
      ...key,
      ...origin,
      subject: caller.subject,
      clientId: caller.clientId,
      own: entitlement === 'own',
      interrupts,
      expiresAt: expiryOf(key, caller, token),
    });
  }

  private async entitlement(
    key: RevocationKey,
    caller: Caller,
    token: IssuedToken | null,
  ): Promise<Entitlement | null> {
    const policy = this.config.REVOCATION_WRITE_POLICY;
    const byToken = entitlementOf(policy, caller, key, token?.subject === caller.subject);
    if (key.domain !== 'sid' || byToken !== null) return byToken;
    const isOwner = await this.sessions.isOf(key.identifier, caller.subject);
    return entitlementOf(policy, caller, key, isOwner);
  }
}

/** When the one token that is revoked expires, with an hour for clocks that differ; null: it is not known, or there is not one token. */
function expiryOf(
  { domain, identifier }: RevocationKey,
  caller: Caller,
  token: IssuedToken | null,
): Date | null {
  if (token !== null) return token.expiresAt;
  const isCallersOwn = domain === 'jti' && identifier === canonicalIdentifier(domain, caller.tokenId);
  return isCallersOwn ? new Date(caller.expiresAt.getTime() + HOUR_MS) : null;
}
