import type { Actor } from '@platform/contracts';
import { pageKeyQuery, pageSizeQuery } from '@platform/service-defaults';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { facilityIdQuery, text } from '../fields/request-fields';
import { INSTANCE_STATUSES } from './instance.entity';
import type { InstanceStatus, TaskInstance } from './instance.entity';

const instant = z.iso.datetime({ offset: true });

/** Body of the complete command; the whole body may be absent. */
export const completeInstanceBody = z.strictObject({
  completedAt: instant.nullish().transform((value) => value ?? null),
  notes: text({ min: 0, max: 4_000 })
    .nullish()
    .transform((value) => value ?? null),
});
export type CompleteInstanceRequest = z.output<typeof completeInstanceBody>;

/** The same, with an absent body read as an empty one. */
export const optionalCompleteInstanceBody = z.preprocess((body) => body ?? {}, completeInstanceBody);

export class ListInstancesDto extends createZodDto(
  z.object({
    facilityId: facilityIdQuery,
    scheduleId: z.guid().optional(),
    status: z.enum(INSTANCE_STATUSES).optional(),
    dueFrom: instant.optional(),
    dueTo: instant.optional(),
    pageKey: pageKeyQuery,
    pageSize: pageSizeQuery,
  }),
) {}

export class InstanceParams extends createZodDto(z.object({ id: z.guid() })) {}

/** A task instance as responses show it. Source: docs/spec-gaps.md. */
export interface InstanceBody {
  readonly taskInstanceId: string;
  readonly scheduleId: string;
  readonly facilityId: number;
  readonly name: string;
  readonly dueAtUtc: string;
  readonly status: InstanceStatus;
  readonly completedAtUtc: string | null;
  readonly completedBy: Actor | null;
  readonly notes: string | null;
}

/** The instance as responses show it. */
export function instanceBody(instance: TaskInstance): InstanceBody {
  const { completedByPersonId: personId, completedByName: name, completedByPersona: persona } = instance;
  return {
    taskInstanceId: instance.taskInstanceId,
    scheduleId: instance.scheduleId,
    facilityId: instance.facilityId,
    name: instance.name,
    dueAtUtc: instance.dueAt.toISOString(),
    status: instance.status,
    completedAtUtc: instance.completedAt?.toISOString() ?? null,
    completedBy: persona === null ? null : { personId, name, persona },
    notes: instance.notes,
  };
}
