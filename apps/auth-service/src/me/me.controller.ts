import { Controller, Get, Header } from '@nestjs/common';
import { CurrentCaller } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import { ApiOkResponse, ApiOperation, ApiTags, RESPONSE_HEADERS } from '@platform/open-api';
import { problems } from '@platform/service-defaults';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { mayHaveAdministrators } from '../applications/application';
import { ApplicationsRepository } from '../applications/applications.repository';
import { authorityOf, withinApplication } from '../identity/authority';
import { IdentitiesService } from '../identity/identities.service';

/** The caller's full identity, including claims that did not fit into the token. */
export class CallerIdentityDto extends createZodDto(
  z
    .object({
      subject: z.string().meta({
        description: '`personid:<n>`, `userid:<n>` or `technician:<provider>:<account id or name>`.',
      }),
      identityType: z.enum(['svc-personid', 'internal-legacy', 'service-provider']),
      personId: z.int().nullable(),
      userId: z.int().nullable(),
      name: z.string().nullable(),
      personas: z.int().meta({ description: 'The persona bits that the token grants.' }),
      roles: z.array(z.string()),
      facilities: z.array(z.int()),
      facilityPersonas: z.array(z.int()).optional().meta({
        description:
          'The persona bits that hold each of `facilities`, in the same order. Absent if the token grants at most one persona besides InternalPartner and that persona holds all of them.',
      }),
      groups: z.array(z.string()).meta({ description: 'Security groups.' }),
    })
    // Without an id, @nestjs/swagger would render "string or null" as an array.
    .meta({ id: 'CallerIdentity', description: 'The full identity behind the token.' }),
) {}

const CARL: z.output<typeof CallerIdentityDto.schema> = {
  subject: 'personid:1001',
  identityType: 'svc-personid',
  personId: 1001,
  userId: null,
  name: 'Carl Customer',
  personas: 2,
  roles: [],
  facilities: [501, 502],
  groups: [],
};

const RITA: z.output<typeof CallerIdentityDto.schema> = {
  ...CARL,
  subject: 'personid:1003',
  personId: 1003,
  name: 'Rita Resident',
  personas: 10,
  facilities: [501, 777],
  facilityPersonas: [8, 2],
};

/**
 * Serves receivers of tokens that have `overflow`, or several personas without `facilityPersonas`. An
 * addition to the specification.
 */
@Controller('auth/me')
@ApiTags('Identity and keys')
export class MeController {
  constructor(
    private readonly identities: IdentitiesService,
    private readonly applications: ApplicationsRepository,
  ) {}

  @Get()
  @ApiOperation({
    operationId: 'getCallerIdentity',
    summary: 'Get the full identity behind the token',
    description:
      'For receivers of a token whose `overflow` names claims that did not fit into it, or of a token for several personas without `facilityPersonas`.',
  })
  @ApiOkResponse({
    description: 'The identity.',
    type: CallerIdentityDto.Output,
    examples: {
      customer: { summary: 'A customer', value: CARL },
      both: { summary: 'A customer in one facility who lives in another', value: RITA },
    },
    headers: RESPONSE_HEADERS.noStore,
  })
  @Header('Cache-Control', 'no-store')
  async me(@CurrentCaller() caller: Caller): Promise<CallerIdentityDto> {
    const [resolution, administrators] = await Promise.all([
      this.identities.resolveCaller(caller),
      this.mayHaveAdministrators(caller.clientId),
    ]);
    if (resolution.outcome !== 'resolved')
      throw problems.unauthorized('The identity behind this token is no longer known.');
    const { subject, identityType, personId, userId, name } = resolution.identity;
    // The response never exceeds the personas and claims of the token. Only claims that did not fit into the
    // token are returned in full.
    const personas = resolution.identity.personas & caller.personas;
    const authority = withinApplication(authorityOf(resolution.identity, personas, caller), administrators);
    return { subject, identityType, personId, userId, name, personas, ...authority };
  }

  /**
   * Returns what `mayHaveAdministrators` says of the token's application; false if it was deleted or
   * disabled.
   */
  private async mayHaveAdministrators(applicationKey: string | null): Promise<boolean> {
    if (applicationKey === null) return mayHaveAdministrators(null);
    const application = await this.applications.findEnabled(applicationKey);
    return application !== null && mayHaveAdministrators(application);
  }
}
