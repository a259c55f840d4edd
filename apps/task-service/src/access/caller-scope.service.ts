import { Inject, Injectable } from '@nestjs/common';
import type { Caller } from '@platform/access-tokens';
import { tracedFetch } from '@platform/service-defaults';
import { z } from 'zod';
import { TASK_CONFIG } from '../config';
import type { TaskServiceConfig } from '../config';
import { facilityScope, isWithinScope, narrowedScope } from './facility-scope';
import type { FacilityScope } from './facility-scope';
import { TaskError } from '../problems/task-error';

const identity = z.object({ facilities: z.array(z.int()) });
const IDENTITY_TIMEOUT_MS = 3_000;

/** Resolves what a caller reaches, and refuses what they do not. */
@Injectable()
export class CallerScope {
  constructor(@Inject(TASK_CONFIG) private readonly config: TaskServiceConfig) {}

  /** The facilities the caller reaches. A token that had no room for them is completed by auth-service's full identity.
   *  @throws {TaskError} identity-unavailable when that cannot be had: nothing is granted on a guess */
  async of(caller: Caller): Promise<FacilityScope> {
    const scope = facilityScope(caller);
    if (scope === 'all' || !caller.overflow.includes('facilities')) return scope;
    return this.fullFacilities(caller);
  }

  /** @throws {TaskError} facility-not-permitted when the facility is out of the caller's reach */
  async require(caller: Caller, facilityId: number): Promise<void> {
    if (!isWithinScope(await this.of(caller), facilityId)) throw new TaskError('facility-not-permitted');
  }

  /** The scope to read a list with. @throws {TaskError} facility-not-permitted when one out of reach was asked for */
  async forList(caller: Caller, facilityId: number | undefined): Promise<FacilityScope> {
    const scope = narrowedScope(await this.of(caller), facilityId);
    if (scope === null) throw new TaskError('facility-not-permitted');
    return scope;
  }

  private async fullFacilities(caller: Caller): Promise<readonly number[]> {
    try {
      const response = await tracedFetch(`${this.config.AUTH_SERVICE_URL.replace(/\/$/, '')}/auth/me`, {
        headers: { authorization: `Bearer ${caller.token}` },
        signal: AbortSignal.timeout(IDENTITY_TIMEOUT_MS),
      });
      if (!response.ok) {
        await response.body?.cancel();
        throw new Error(`auth-service answered ${String(response.status)}`);
      }
      return identity.parse(await response.json()).facilities;
    } catch (error) {
      throw new TaskError('identity-unavailable', { cause: error });
    }
  }
}
