import { jsonAnswer, problemAnswer, problemExample } from '@platform/service-defaults';
import type { AnswerDocs, OperationDocs } from '@platform/service-defaults';
import { z } from 'zod';
import type { SecurityEditorKey } from './composite-identifier';

const TAG = 'Authorization queries';

const roleMembers = z
  .object({
    members: z.array(
      z
        .object({
          type: z.string().meta({ description: 'Always `SecurityEditor`.' }),
          key: z.string().meta({ description: '`UserName` or `GroupName`.' }),
          value: z.string().meta({ description: 'The name.' }),
        })
        .meta({ id: 'RoleMember' }),
    ),
    identityNames: z.array(z.string()).meta({ description: 'The user names among the members, each once.' }),
  })
  .meta({ id: 'RoleMembersResponse' });

const hasAccess = z.object({ hasAccess: z.boolean() }).meta({ id: 'HasAccessResponse' });

function badIdentifier(key: SecurityEditorKey, path: string): AnswerDocs {
  return problemAnswer('The identifier has another form, or a query parameter is not valid.', {
    form: problemExample(
      'Another form',
      { status: 400, detail: `The identifier must have the form SecurityEditor~~${key}~~<name>.` },
      path,
    ),
  });
}

export const LIST_ROLE_MEMBERS: OperationDocs = {
  ...{ id: 'listRoleMembers', tag: TAG, summary: 'List all members of a security group' },
  description: 'Groups in groups are walked; cycles end. A group that does not exist has no members.',
  path: {
    identifier: {
      description: '`SecurityEditor~~GroupName~~<name>`.',
      example: 'SecurityEditor~~GroupName~~Operations',
    },
  },
  answers: {
    200: jsonAnswer('The members.', roleMembers, {
      operations: {
        summary: 'A group in a group, and a user in it',
        value: {
          members: [
            { type: 'SecurityEditor', key: 'GroupName', value: 'Dispatch' },
            { type: 'SecurityEditor', key: 'UserName', value: 'ivy.internal' },
          ],
          identityNames: ['ivy.internal'],
        },
      },
      none: { summary: 'No such group', value: { members: [], identityNames: [] } },
    }),
    400: badIdentifier('GroupName', '/auth/roles/Operations/members'),
  },
};

export const HAS_ACCESS: OperationDocs = {
  ...{ id: 'hasAccess', tag: TAG, summary: 'Say whether a user may pass an access point' },
  description: 'An access point or a user that does not exist: false.',
  path: {
    identifier: {
      description: '`SecurityEditor~~AccessPointName~~<name>`.',
      example: 'SecurityEditor~~AccessPointName~~Scheduling',
    },
  },
  query: {
    expectedUserId: {
      description: 'The user to ask about; without it the user of the token.',
      schema: { type: 'integer' },
      example: 9001,
    },
  },
  answers: {
    200: jsonAnswer('The answer.', hasAccess, {
      yes: { summary: 'Yes', value: { hasAccess: true } },
      no: { summary: 'No', value: { hasAccess: false } },
    }),
    400: badIdentifier('AccessPointName', '/auth/accessPoints/Scheduling/hasAccess'),
  },
};
