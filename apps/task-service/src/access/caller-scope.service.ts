import { Inject, Injectable } from '@nestjs/common';
import { facilitiesHeldFor } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import type { Actor } from '@platform/contracts';
import { Persona, combinePersonas, hasPersona, isPersonas } from '@platform/personas';
import type { Personas } from '@platform/personas';
import { tracedFetch } from '@platform/service-defaults';
import { z } from 'zod';
import { TASK_CONFIG } from '../config';
import type { TaskServiceConfig } from '../config';
import { TaskError } from '../problems/task-problem.filter';
import type { RoutePersonas } from './route-personas';

/** The facilities a caller may see and act in: every one, or those listed. */
export type FacilityScope = 'all' | readonly number[];

const personas = z.custom<Personas>(isPersonas);
const identity = z
  .object({
    personas: personas.optional(),
    facilities: z.array(z.int()),
    facilityPersonas: z.array(personas).optional(),
  })
  .refine(
    ({ facilities, facilityPersonas: pairs }) => pairs === undefined || pairs.length === facilities.length,
  );
const IDENTITY_TIMEOUT_MS = 3_000;

/**
 * InternalPartner reaches every facility; everybody else only those of their own claims that they hold for a
 * persona which the route accepts. Null: the token does not say. Source: docs/spec-gaps.md.
 */
export function facilityScope(caller: ScopeClaims, route: RoutePersonas): FacilityScope | null {
  const accepted = combinePersonas(...route);
  if (hasPersona(caller.personas & accepted, Persona.InternalPartner)) return 'all';
  return facilitiesHeldFor(caller, accepted);
}

type ScopeClaims = Pick<Caller, 'personas' | 'facilities' | 'facilityPersonas' | 'overflow'>;

/** True when the scope holds the facility. */
export function isWithinScope(scope: FacilityScope, facilityId: number): boolean {
  return scope === 'all' || scope.includes(facilityId);
}

/**
 * The scope a list is read with: the facility asked for if it is within the caller's scope, the whole scope
 * if none was asked for, null when the one asked for is out of reach.
 */
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

  /**
   * The facilities the caller reaches on a route that accepts these personas. A token that does not say them,
   * or not for which personas, is completed by auth-service's full identity.
   * @throws {TaskError} identity-unavailable when that cannot be had: nothing is granted on a guess
   */
  async of(caller: Caller, route: RoutePersonas): Promise<FacilityScope> {
    return facilityScope(caller, route) ?? (await this.fullScope(caller, route));
  }

  /** @throws {TaskError} facility-not-permitted when the facility is out of the caller's reach */
  async require(caller: Caller, route: RoutePersonas, facilityId: number): Promise<void> {
    if (!isWithinScope(await this.of(caller, route), facilityId))
      throw new TaskError('facility-not-permitted');
  }

  /**
   * The scope to read a list with.
   * @throws {TaskError} facility-not-permitted when one out of reach was asked for
   */
  async forList(
    caller: Caller,
    route: RoutePersonas,
    facilityId: number | undefined,
  ): Promise<FacilityScope> {
    const scope = narrowedScope(await this.of(caller, route), facilityId);
    if (scope === null) throw new TaskError('facility-not-permitted');
    return scope;
  }

  private async fullScope(caller: Caller, route: RoutePersonas): Promise<FacilityScope> {
    try {
      const response = await tracedFetch(`${this.config.AUTH_SERVICE_URL.replace(/\/$/, '')}/auth/me`, {
        headers: { authorization: `Bearer ${caller.token}` },
        signal: AbortSignal.timeout(IDENTITY_TIMEOUT_MS),
      });
      if (!response.ok) {
        await response.body?.cancel();
        throw new Error(`auth-service responded with ${String(response.status)}`);
      }
      const full = identity.parse(await response.json());
      const scope = facilityScope(
        {
          personas: caller.personas & (full.personas ?? caller.personas),
          facilities: full.facilities,
          facilityPersonas: full.facilityPersonas ?? null,
          overflow: [],
        },
        route,
      );
      // 1.0.0 does not know it.
      if (scope === null)
        throw new Error('auth-service does not say for which personas the facilities are held');
      return scope;
    } catch (error) {
      throw new TaskError('identity-unavailable', { cause: error });
    }
  }
}
