import { Controller, Get, Header } from '@nestjs/common';
import { CurrentCaller } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import { Documented, problems } from '@platform/service-defaults';
import { IdentitiesService } from './identities.service';
import type { Identity } from './identity';
import { GET_ME } from './me-docs';

/** The caller's identity with everything that may not have fitted into the token. */
export type CallerIdentity = Pick<
  Identity,
  'subject' | 'identityType' | 'personId' | 'userId' | 'name' | 'personas' | 'roles' | 'facilities' | 'groups'
>;

/** For receivers of a token with `overflow`. Additive to the specification. */
@Controller('auth/me')
export class MeController {
  constructor(private readonly identities: IdentitiesService) {}

  @Get()
  @Documented(GET_ME)
  @Header('Cache-Control', 'no-store')
  async me(@CurrentCaller() caller: Caller): Promise<CallerIdentity> {
    const resolution = await this.identities.resolveCaller(caller);
    if (resolution.outcome !== 'resolved')
      throw problems.unauthorized('The identity behind this token is no longer known.');
    const { subject, identityType, personId, userId, name, roles, facilities, groups, personas } =
      resolution.identity;
    // A token may grant fewer personas than its user holds; it never speaks for more than it grants.
    const granted = personas & caller.personas;
    return { subject, identityType, personId, userId, name, personas: granted, roles, facilities, groups };
  }
}
