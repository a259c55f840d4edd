import { NEXT_PAGE_KEY_DESCRIPTION, pageKeyQuery, pageSizeQuery } from '@platform/service-defaults';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { OWNER_DOMAINS, sessionOwner } from './sessions.repository';
import type { SessionOwner } from './sessions.repository';

export const BAD_OWNER =
  'domain and identifier go together, and the domain must be able to hold the identifier';

export class SessionListQueryDto extends createZodDto(
  z.object({
    pageKey: pageKeyQuery,
    pageSize: pageSizeQuery,
    domain: z.enum(OWNER_DOMAINS).optional().meta({
      description:
        'With `identifier`: the owner of the sessions, named as in revocations. For internal administrators.',
    }),
    identifier: z.string().max(255).optional().meta({
      description: 'The identifier of the owner, as in revocations of that domain.',
      example: '1003',
    }),
  }),
) {}

/** Returns the owner that a query names; null if it names none (the caller); undefined if it is not valid. */
export function ownerInQuery({ domain, identifier }: SessionListQueryDto): SessionOwner | null | undefined {
  if (domain === undefined || identifier === undefined) return domain === identifier ? null : undefined;
  return sessionOwner(domain, identifier) ?? undefined;
}

const instant = z.string().meta({ format: 'date-time' });

const session = z
  .object({
    sid: z.string().meta({ format: 'uuid', description: 'The claim `sid` of its tokens.' }),
    flow: z.string().meta({ description: 'The flow by which the user signed in.' }),
    applicationKey: z.string(),
    createdAt: instant,
    lastUsedAt: instant.meta({ description: 'When its newest refresh token was issued.' }),
    expiresAt: instant.meta({ description: 'When the session ends unless it is refreshed.' }),
    current: z
      .boolean()
      .meta({ description: 'Whether the access token of the request belongs to this session.' }),
  })
  .meta({ id: 'Session', description: 'A sign-in that can be refreshed.' });

export class SessionPageDto extends createZodDto(
  z
    .object({
      sessions: z.array(session),
      nextPageKey: z.string().nullable().meta({ description: NEXT_PAGE_KEY_DESCRIPTION }),
    })
    .meta({ id: 'SessionPage', description: 'Sessions, newest first.' }),
) {}

export const SID = '7f3c1a52-7a61-4c5e-9b33-1f1f0a4c8d11';

export const SESSION_PAGE: z.output<typeof SessionPageDto.schema> = {
  sessions: [
    {
      sid: SID,
      flow: 'password',
      applicationKey: 'demo-backend',
      createdAt: '2026-03-02T09:15:00.123Z',
      lastUsedAt: '2026-03-05T08:00:00.000Z',
      expiresAt: '2027-03-02T09:15:00.000Z',
      current: true,
    },
  ],
  nextPageKey: null,
};
