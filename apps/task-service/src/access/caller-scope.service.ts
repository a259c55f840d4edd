import { Inject, Injectable } from '@nestjs/common';
import type { Caller } from '@platform/access-tokens';
import type { Actor } from '@platform/contracts';
import { Persona, hasPersona } from '@platform/personas';
import { tracedFetch } from '@platform/service-defaults';
import { z } from 'zod';
import { TASK_CONFIG } from '../config';
import type { TaskServiceConfig } from '../config';
import { TaskError } from '../problems/task-problem.filter';

/** The facilities a caller may see and act in: every one, or those listed. */
export type FacilityScope = 'all' | readonly number[];

const identity = z.object({ facilities: z.array(z.int()) });
const IDENTITY_TIMEOUT_MS = 3_000;

/** InternalPartner reaches every facility; everybody else only those of their own claims. Which personas may call at all
 *  is each route's own rule. Source: docs/spec-gaps.md. */
export function facilityScope({
  personas,
  facilities,
}: Pick<Caller, 'personas' | 'facilities'>): FacilityScope {
  return hasPersona(personas, Persona.InternalPartner) ? 'all' : facilities;
}

/** True when the scope holds the facility. */
export function isWithinScope(scope: FacilityScope, facilityId: number): boolean {
  return scope === 'all' || scope.includes(facilityId);
}

/** The scope a list is read with: the facility asked for if it is within the caller's scope, the whole scope if none was
 *  asked for, null when the one asked for is out of reach. */
export function narrowedScope(scope: FacilityScope, facilityId: number | undefined): FacilityScope | null {
  if (facilityId === undefined) return scope;
  return isWithinScope(scope, facilityId) ? [facilityId] : null;
}

/** Who did something, as events and bodies name them. */
export function actorOf({ personId, name, personas }: Pick<Caller, 'personId' | 'name' | 'personas'>): Actor {
  // PostgreSQL stores no U+0000; a token's name must not be able to fail a write.
  return { personId, name: name?.replaceAll('\u0000', '\ufffd') ?? null, persona: personas };
}

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
        throw new Error(`auth-service responded with ${String(response.status)}`);
      }
      return identity.parse(await response.json()).facilities;
    } catch (error) {
      throw new TaskError('identity-unavailable', { cause: error });
    }
  }
}
