import { Controller, Get, Param, Query } from '@nestjs/common';
import { CurrentCaller, RequireInternalAdministrator } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import { Documented, problems } from '@platform/service-defaults';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { AccessControlRepository } from './access-control.repository';
import { HAS_ACCESS, LIST_ROLE_MEMBERS } from './access-control-docs';
import type { SecurityEditorKey } from './composite-identifier';
import { nameInIdentifier } from './composite-identifier';

export interface RoleMembersResponse {
  members: { type: string; key: string; value: string }[];
  identityNames: string[];
}

export interface HasAccessResponse {
  hasAccess: boolean;
}

export class HasAccessQueryDto extends createZodDto(
  z.object({
    expectedUserId: z
      .string()
      .regex(/^-?\d{1,16}$/, 'must be an integer')
      .transform(Number)
      .refine(Number.isSafeInteger, 'must be an integer')
      .optional(),
  }),
) {}

/** Who is in a group, and who may pass an access point. Source: authentication spec, Authorization queries. */
@Controller('auth')
@RequireInternalAdministrator()
export class AccessControlController {
  constructor(private readonly repository: AccessControlRepository) {}

  @Get('roles/:identifier/members')
  @Documented(LIST_ROLE_MEMBERS)
  async members(@Param('identifier') identifier: string): Promise<RoleMembersResponse> {
    const found = await this.repository.findMembers(nameOrProblem(identifier, 'GroupName'));
    const members = found.map(({ key, value }) => ({ type: 'SecurityEditor', key, value }));
    const userNames = found.filter(({ key }) => key === 'UserName').map(({ value }) => value);
    return { members, identityNames: [...new Set(userNames)] };
  }

  @Get('accessPoints/:identifier/hasAccess')
  @Documented(HAS_ACCESS)
  async hasAccess(
    @Param('identifier') identifier: string,
    @Query() { expectedUserId }: HasAccessQueryDto,
    @CurrentCaller() caller: Caller,
  ): Promise<HasAccessResponse> {
    const name = nameOrProblem(identifier, 'AccessPointName');
    const userId = expectedUserId ?? caller.userId;
    // Only internal users are in groups; a caller without a user id has access to nothing.
    return { hasAccess: userId !== null && (await this.repository.hasAccess(name, userId)) };
  }
}

/** @throws {ProblemException} 400 when the identifier has another shape */
function nameOrProblem(identifier: string, key: SecurityEditorKey): string {
  const name = nameInIdentifier(identifier, key);
  if (name === null)
    throw problems.badRequest(`The identifier must have the form SecurityEditor~~${key}~~<name>.`);
  return name;
}
