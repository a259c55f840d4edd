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
import { TaskError } from '../problems/task-error';
import type { RoutePersonas } from './route-personas';

/** The facilities that a caller may read and change: all, or those listed. */
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
 * Returns the facilities that a caller reaches on a route. An InternalPartner reaches all. Any other caller
 * reaches the facilities of the token that are held for a persona which the route accepts. Null if the token
 * omits facilities, or does not say for which persona each is held. Source: docs/spec-gaps.md.
 */
export function facilityScope(caller: ScopeClaims, route: RoutePersonas): FacilityScope | null {
  const accepted = combinePersonas(...route);
  if (hasPersona(caller.personas & accepted, Persona.InternalPartner)) return 'all';
  return facilitiesHeldFor(caller, accepted);
}

type ScopeClaims = Pick<Caller, 'personas' | 'facilities' | 'facilityPersonas' | 'overflow'>;

/** Returns whether the scope includes the facility. */
export function isWithinScope(scope: FacilityScope, facilityId: number): boolean {
  return scope === 'all' || scope.includes(facilityId);
}

/**
 * Returns the scope for reading a list: the requested facility if the caller's scope includes it, the
 * caller's whole scope if none was requested, null if the requested one is out of scope.
 */
export function narrowedScope(scope: FacilityScope, facilityId: number | undefined): FacilityScope | null {
  if (facilityId === undefined) return scope;
  return isWithinScope(scope, facilityId) ? [facilityId] : null;
}

/** Returns the caller as the actor in events and response bodies. */
export function actorOf({ personId, name, personas }: Pick<Caller, 'personId' | 'name' | 'personas'>): Actor {
  // PostgreSQL cannot store U+0000: a name that contains it must not make the write fail.
  return { personId, name: name?.replaceAll('\u0000', '\ufffd') ?? null, persona: personas };
}

/** Resolves the facilities that a caller reaches, and rejects requests for others. */
@Injectable()
export class CallerScope {
  constructor(@Inject(TASK_CONFIG) private readonly config: TaskServiceConfig) {}

  /**
   * Returns the facilities that the caller reaches on a route which accepts these personas. Asks
   * auth-service's `/auth/me` if the token lists only some of the facilities, or does not say for which
   * personas they are held.
   * @throws {TaskError} identity-unavailable if auth-service does not return them
   */
  async of(caller: Caller, route: RoutePersonas): Promise<FacilityScope> {
    return facilityScope(caller, route) ?? (await this.fullScope(caller, route));
  }

  /**
   * Checks that the caller reaches the facility.
   * @throws {TaskError} facility-not-permitted, identity-unavailable
   */
  async require(caller: Caller, route: RoutePersonas, facilityId: number): Promise<void> {
    if (!isWithinScope(await this.of(caller, route), facilityId))
      throw new TaskError('facility-not-permitted');
  }

  /**
   * Returns the scope for reading a list.
   * @throws {TaskError} facility-not-permitted if the requested facility is out of the caller's scope;
   * identity-unavailable
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
      // auth-service 1.0.0 does not return `facilityPersonas`.
      if (scope === null)
        throw new Error('auth-service does not say for which personas the facilities are held');
      return scope;
    } catch (error) {
      throw new TaskError('identity-unavailable', { cause: error });
    }
  }
}
