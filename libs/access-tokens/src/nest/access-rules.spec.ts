import type { ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { Persona } from '@platform/personas';
import type { Caller } from '../token/caller';
import {
  callerOf,
  documentedAccess,
  Public,
  RequireInternalAdministrator,
  RequirePersona,
  RouteAccess,
} from './access-rules';

class Doors {
  any(): void {}
  @Public()
  open(): void {}
  @RequirePersona(Persona.Customer, Persona.Owner)
  customersAndOwners(): void {}
  @RequireInternalAdministrator()
  administrators(): void {}
  @RequirePersona(Persona.Customer)
  @RequireInternalAdministrator()
  both(): void {}
  @Public()
  @RequirePersona(Persona.Customer)
  contradictory(): void {}
}

@Public()
class Lobby {
  enter(): void {}
  @RequirePersona(Persona.Customer)
  office(): void {}
  @RequireInternalAdministrator()
  safe(): void {}
}

@RequirePersona(Persona.InternalPartner)
class Office {
  desk(): void {}
  @RequirePersona(Persona.Resident)
  window(): void {}
  @Public()
  bell(): void {}
}

/** The controller of each route. */
const CONTROLLERS = {
  any: Doors,
  open: Doors,
  customersAndOwners: Doors,
  administrators: Doors,
  both: Doors,
  contradictory: Doors,
  enter: Lobby,
  office: Lobby,
  safe: Lobby,
  desk: Office,
  window: Office,
  bell: Office,
} as const;

function routeOf(name: keyof typeof CONTROLLERS) {
  const controller = CONTROLLERS[name];
  return { controller, handler: Reflect.get(controller.prototype, name) as () => void };
}

const ADMINISTRATORS = 'the persona InternalPartner or the role CustomerGlobalAdministrator';
const PARTNER = { personas: Persona.InternalPartner, roles: [] as string[] };
const CUSTOMER = { personas: Persona.Customer, roles: [] as string[] };
const GLOBAL_CUSTOMER = { personas: Persona.Customer, roles: ['CustomerGlobalAdministrator'] };
const RESIDENT = { personas: Persona.Resident, roles: [] as string[] };

describe('who may call a route', () => {
  it.each([
    ['any', null, [PARTNER, CUSTOMER, GLOBAL_CUSTOMER, RESIDENT]],
    ['customersAndOwners', 'one of the personas Customer, Owner', [CUSTOMER, GLOBAL_CUSTOMER]],
    ['administrators', ADMINISTRATORS, [PARTNER, GLOBAL_CUSTOMER]],
    ['both', `one of the personas Customer, and ${ADMINISTRATORS}`, [GLOBAL_CUSTOMER]],
    ['contradictory', 'one of the personas Customer', [CUSTOMER, GLOBAL_CUSTOMER]],
    ['office', 'one of the personas Customer', [CUSTOMER, GLOBAL_CUSTOMER]],
    ['safe', ADMINISTRATORS, [PARTNER, GLOBAL_CUSTOMER]],
    ['desk', 'one of the personas InternalPartner', [PARTNER]],
    ['window', 'one of the personas Resident', [RESIDENT]],
  ] as const)('of %s: %s', (name, needs, allowed) => {
    const { controller, handler } = routeOf(name);
    expect(documentedAccess(controller, handler)).toEqual({ isPublic: false, needs });
    const access = new RouteAccess(new Reflector());
    const context = {
      getClass: () => controller,
      getHandler: () => handler,
    } as unknown as ExecutionContext;
    expect(access.isPublic(context)).toBe(false);
    const callers = [PARTNER, CUSTOMER, GLOBAL_CUSTOMER, RESIDENT];
    expect(callers.filter((caller) => access.allows(context, caller as unknown as Caller))).toEqual(allowed);
  });

  it.each(['open', 'enter', 'bell'] as const)('of %s: anybody', (name) => {
    const { controller, handler } = routeOf(name);
    expect(documentedAccess(controller, handler)).toEqual({ isPublic: true, needs: null });
  });

  it('requires at least one persona, and not None', () => {
    const anyOf: Persona[] = [];
    expect(() => RequirePersona(...(anyOf as [Persona]))).toThrow('name at least one persona, and not None');
    expect(() => RequirePersona(Persona.Customer, Persona.None)).toThrow(RangeError);
  });
});

describe('the caller of a request', () => {
  it('is the user that the guard set; a public route has none', () => {
    const user = PARTNER as unknown as Caller;
    expect(callerOf({ headers: {}, user })).toBe(user);
    expect(() => callerOf({ headers: {} })).toThrow('a public route has no caller');
  });
});
