import type { Caller } from '@platform/access-tokens';
import type { Actor } from '@platform/contracts';

/** Who did something, as events and bodies name them. */
export function actorOf({ personId, name, personas }: Pick<Caller, 'personId' | 'name' | 'personas'>): Actor {
  return { personId, name, persona: personas };
}
