import { Inject, Injectable } from '@nestjs/common';
import type { Caller, Revocation, RevocationSource } from '@platform/access-tokens';
import { Metrics, problems } from '@platform/service-defaults';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import type { RevocationKey } from './revocation';
import { REVOCATION_FORBIDDEN, mayRevoke, toWire } from './revocation';
import { RevocationsRepository } from './revocations.repository';
import type { RevocationPosition } from './revocations.repository';

const PAGE_SIZE = 10_000;

/** Sets revocations, and feeds this service's own guard straight from the table. */
@Injectable()
export class RevocationsService implements RevocationSource {
  private readonly revocations;

  constructor(
    private readonly repository: RevocationsRepository,
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
    metrics: Metrics,
  ) {
    this.revocations = metrics.counter('auth_revocations_total', 'Revocations set', ['domain']);
  }

  /** Revokes now, on behalf of a caller. @throws {ProblemException} 403 when the policy does not let the caller revoke this */
  async revoke(
    key: RevocationKey,
    caller: Caller,
    origin: { address: string | null; traceId: string },
  ): Promise<void> {
    if (!mayRevoke(this.config.REVOCATION_WRITE_POLICY, caller, key.domain, key.identifier))
      throw problems.forbidden(REVOCATION_FORBIDDEN);
    await this.repository.put(key, { subject: caller.subject, clientId: caller.clientId, ...origin });
    this.revocations.inc({ domain: key.domain });
  }

  async *changesSince(since: Date, signal?: AbortSignal): AsyncGenerator<readonly Revocation[]> {
    let after: RevocationPosition | null = null;
    for (;;) {
      signal?.throwIfAborted();
      const rows = await this.repository.list(since, PAGE_SIZE, after);
      yield rows.map(toWire);
      if (rows.length < PAGE_SIZE) return;
      after = rows.at(-1)!;
    }
  }
}
