import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';

export class HasAccessQueryDto extends createZodDto(
  z.object({
    expectedUserId: z
      .string()
      .regex(/^-?\d{1,16}$/, 'must be an integer')
      .transform(Number)
      .refine(Number.isSafeInteger, 'must be an integer')
      .optional()
      .meta({
        type: 'integer',
        pattern: undefined,
        description: 'The user to check. Default: the user of the token.',
        example: 9001,
      }),
  }),
) {}

const member = z
  .object({
    type: z.string().meta({ description: 'Always `SecurityEditor`.' }),
    key: z.string().meta({ description: '`UserName` or `GroupName`.' }),
    value: z.string().meta({ description: 'The name.' }),
  })
  .meta({ id: 'RoleMember' });

export class RoleMembersResponse extends createZodDto(
  z.object({
    members: z.array(member),
    identityNames: z.array(z.string()).meta({ description: 'The user names among the members, each once.' }),
  }),
) {}

export const ROLE_MEMBERS_EXAMPLES = {
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
};

export class HasAccessResponse extends createZodDto(z.object({ hasAccess: z.boolean() })) {}

export const HAS_ACCESS_EXAMPLES = {
  yes: { summary: 'Yes', value: { hasAccess: true } },
  no: { summary: 'No', value: { hasAccess: false } },
};

/** The kind of name in a composite identifier. */
export type SecurityEditorKey = 'GroupName' | 'AccessPointName';

const SEPARATOR = '~~';
const EDITOR = 'SecurityEditor';

/**
 * Returns the name in `SecurityEditor~~<key>~~<name>`, in Unicode normal form C. The name itself may contain
 * tildes. Returns null for any other identifier. Source: authentication spec, Authorization queries.
 */
export function nameInIdentifier(identifier: string, key: SecurityEditorKey): string | null {
  const prefix = `${EDITOR}${SEPARATOR}${key}${SEPARATOR}`;
  if (!identifier.startsWith(prefix)) return null;
  // Normalised like user names: clients may send a character composed or decomposed, and the router itself
  // decomposes "İ" (see routableUrl).
  const name = identifier.slice(prefix.length).normalize('NFC');
  return /^[^\p{Cc}\p{Cs}]{1,256}$/u.test(name) ? name : null;
}
