import type { Caller } from '@platform/access-tokens';
import type { Actor } from '@platform/contracts';

/** Who did something, as events and bodies name them. */
export function actorOf({ personId, name, personas }: Pick<Caller, 'personId' | 'name' | 'personas'>): Actor {
  // PostgreSQL stores no U+0000; a token's name must not be able to fail a write.
  return { personId, name: name?.replaceAll('\u0000', '\ufffd') ?? null, persona: personas };
}
