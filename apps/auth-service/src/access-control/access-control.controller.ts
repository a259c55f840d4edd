import { Controller, Get, Param, Query } from '@nestjs/common';
import { CurrentCaller, RequireInternalAdministrator } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import { ApiOkResponse, ApiOperation, ApiParam, ApiTags, ProblemResponse } from '@platform/open-api';
import { problems } from '@platform/service-defaults';
import {
  HAS_ACCESS_EXAMPLES,
  HasAccessQueryDto,
  HasAccessResponse,
  ROLE_MEMBERS_EXAMPLES,
  RoleMembersResponse,
  nameInIdentifier,
} from './access-control.dto';
import type { SecurityEditorKey } from './access-control.dto';
import { AccessControlRepository } from './access-control.repository';

/** Queries on group members and access points. Source: authentication spec, Authorization queries. */
@Controller('auth')
@RequireInternalAdministrator()
@ApiTags('Authorization queries')
export class AccessControlController {
  constructor(private readonly repository: AccessControlRepository) {}

  @Get('roles/:identifier/members')
  @ApiOperation({
    operationId: 'listRoleMembers',
    summary: 'List all members of a security group',
    description: 'Includes the members of nested groups, even in cycles. An unknown group has no members.',
  })
  @ApiParam({
    name: 'identifier',
    description: '`SecurityEditor~~GroupName~~<name>`.',
    example: 'SecurityEditor~~GroupName~~Operations',
  })
  @ApiOkResponse({
    description: 'The members.',
    type: RoleMembersResponse.Output,
    examples: ROLE_MEMBERS_EXAMPLES,
  })
  @BadIdentifier('GroupName', '/auth/roles/Operations/members')
  async members(@Param('identifier') identifier: string): Promise<RoleMembersResponse> {
    const found = await this.repository.findMembers(nameOrProblem(identifier, 'GroupName'));
    const members = found.map(({ key, value }) => ({ type: 'SecurityEditor', key, value }));
    const userNames = found.filter(({ key }) => key === 'UserName').map(({ value }) => value);
    return { members, identityNames: [...new Set(userNames)] };
  }

  @Get('accessPoints/:identifier/hasAccess')
  @ApiOperation({
    operationId: 'hasAccess',
    summary: 'Say whether a user may pass an access point',
    description: 'Returns false for an unknown access point or user.',
  })
  @ApiParam({
    name: 'identifier',
    description: '`SecurityEditor~~AccessPointName~~<name>`.',
    example: 'SecurityEditor~~AccessPointName~~Scheduling',
  })
  @ApiOkResponse({
    description: 'Whether the user may pass.',
    type: HasAccessResponse.Output,
    examples: HAS_ACCESS_EXAMPLES,
  })
  @BadIdentifier('AccessPointName', '/auth/accessPoints/Scheduling/hasAccess')
  async hasAccess(
    @Param('identifier') identifier: string,
    @Query() { expectedUserId }: HasAccessQueryDto,
    @CurrentCaller() caller: Caller,
  ): Promise<HasAccessResponse> {
    const name = nameOrProblem(identifier, 'AccessPointName');
    const userId = expectedUserId ?? caller.userId;
    // Only internal users are in groups. A caller without a user id has no access.
    return { hasAccess: userId !== null && (await this.repository.hasAccess(name, userId)) };
  }
}

function BadIdentifier(key: SecurityEditorKey, instance: string): MethodDecorator {
  return ProblemResponse(400, 'The identifier has another form, or a query parameter is not valid.', {
    form: { summary: 'Another form', detail: identifierForm(key), instance },
  });
}

function identifierForm(key: SecurityEditorKey): string {
  return `The identifier must have the form SecurityEditor~~${key}~~<name>.`;
}

/** Returns the name in the identifier. @throws {ProblemException} 400 if the identifier has another form */
function nameOrProblem(identifier: string, key: SecurityEditorKey): string {
  const name = nameInIdentifier(identifier, key);
  if (name === null) throw problems.badRequest(identifierForm(key));
  return name;
}
