import { Inject, Injectable } from '@nestjs/common';
import type { Caller, Revocation, RevocationSource } from '@platform/access-tokens';
import { Metrics } from '@platform/service-defaults';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { SessionsRepository } from '../sessions/sessions.repository';
import type { RevocationKey } from './revocation';
import { mayRevoke, toWire } from './revocation';
import { RevocationsRepository } from './revocations.repository';
import type { RevocationPosition } from './revocations.repository';

/** Where a request to revoke comes from. */
interface RevocationOrigin {
  address: string | null;
  traceId: string;
}

const PAGE_SIZE = 10_000;

/** Sets revocations, and feeds this service's own guard straight from the table. */
@Injectable()
export class RevocationsService implements RevocationSource {
  private readonly revocations;

  constructor(
    private readonly repository: RevocationsRepository,
    private readonly sessions: SessionsRepository,
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
    metrics: Metrics,
  ) {
    this.revocations = metrics.counter('auth_revocations_total', 'Revocations set', ['domain']);
  }

  /** Revokes now, on behalf of a caller. False, and nothing done, when the caller may not revoke this. */
  async revoke(key: RevocationKey, caller: Caller, origin: RevocationOrigin): Promise<boolean> {
    const permitted =
      mayRevoke(this.config.REVOCATION_WRITE_POLICY, caller, key) ||
      (key.domain === 'sid' && (await this.sessions.isOf(key.identifier, caller.subject)));
    if (!permitted) return false;
    await this.repository.put(key, { subject: caller.subject, clientId: caller.clientId, ...origin });
    this.revocations.inc({ domain: key.domain });
    return true;
  }

  async *changesSince(
    since: Date,
    signal?: AbortSignal,
    tellPresent?: (present: Date) => void,
  ): AsyncGenerator<readonly Revocation[]> {
    tellPresent?.(await this.repository.present());
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
