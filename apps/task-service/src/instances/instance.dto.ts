import { pageKeyQuery, pageSizeQuery } from '@platform/service-defaults';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import {
  IVY,
  actor,
  facilityId,
  facilityIdQuery,
  identifier,
  instant as instantField,
  nextPageKey,
  templateBody,
  text,
} from '../fields/fields';
import { CANCELLATION_CAUSES, INSTANCE_STATUSES } from './instance.entity';
import type { TaskInstance } from './instance.entity';

export const INSTANCE_ID = '0198f2c5-03b7-4e0a-8f64-2d9c5a7e1b30';
const instant = z.iso.datetime({ offset: true });

/**
 * Omits the type `object` from the API document, because the body `null` is accepted, too, as in release
 * 1.0.0.
 */
const ALSO_NULL = { type: undefined };

const completeInstanceBody = z
  .strictObject({
    completedAt: instant.nullish().transform((value) => value ?? null),
    notes: text({ min: 0, max: 4_000 })
      .nullish()
      .transform((value) => value ?? null),
  })
  .meta(ALSO_NULL);

/** Body of the complete command; the whole body may be absent or null. */
export class CompleteInstanceDto extends createZodDto(completeInstanceBody) {}
export type CompleteInstanceRequest = z.output<typeof completeInstanceBody>;

/** Schema that reads an absent or null body as an empty object. */
export const optionalCompleteInstanceBody = z.preprocess((body) => body ?? {}, completeInstanceBody);

const cancelInstanceBody = z
  .strictObject({
    reason: text({ min: 0, max: 4_000 })
      .nullish()
      .transform((value) => value ?? null),
  })
  .meta(ALSO_NULL);

/** Body of the cancel command; the whole body may be absent or null. */
export class CancelInstanceDto extends createZodDto(cancelInstanceBody) {}
export type CancelInstanceRequest = z.output<typeof cancelInstanceBody>;

/** Schema that reads an absent or null body as an empty object. */
export const optionalCancelInstanceBody = z.preprocess((body) => body ?? {}, cancelInstanceBody);

export class ListInstancesDto extends createZodDto(
  z.strictObject({
    facilityId: facilityIdQuery,
    scheduleId: z.guid().optional().meta({ description: 'Only those of this schedule.' }),
    status: z
      .enum(INSTANCE_STATUSES)
      .optional()
      .meta({ description: 'Only those in this state.', example: 'Pending' }),
    dueFrom: instant
      .optional()
      .meta({ description: 'Only those due at this instant or later.', example: '2026-03-09T00:00:00Z' }),
    dueTo: instant
      .optional()
      .meta({ description: 'Only those due before this instant.', example: '2026-03-16T00:00:00Z' }),
    pageKey: pageKeyQuery,
    pageSize: pageSizeQuery,
  }),
) {}

export class InstanceParams extends createZodDto(
  z.object({ id: z.guid().meta({ description: 'The task instance.', example: INSTANCE_ID }) }),
) {}

// Source: docs/spec-gaps.md.
const instance = z
  .object({
    taskInstanceId: identifier('The task instance.'),
    scheduleId: identifier('The schedule that it was generated from.'),
    facilityId,
    name: z.string().meta({
      description:
        'Name of the schedule. A later rename changes it only while the instance is pending and in the future.',
    }),
    dueAtUtc: instantField('When it is due.'),
    status: z.enum(INSTANCE_STATUSES),
    completedAtUtc: instantField('When it was completed.').nullable(),
    completedBy: actor.nullable(),
    notes: z.string().nullable(),
    template: z.record(z.string(), z.unknown()).nullable().meta({
      description:
        'Template of the schedule. A later change updates it only while the instance is pending and in the future.',
    }),
    cancelledAtUtc: instantField('When it was cancelled.').nullable(),
    cancelledBy: actor.nullable().meta({ description: 'Who cancelled it, or changed its schedule.' }),
    cancellationCause: z.enum(CANCELLATION_CAUSES).nullable().meta({
      description:
        '`Person`: cancelled for good; nothing is generated at its time again. Any other: its schedule or calendar changed.',
    }),
    cancellationReason: z.string().nullable().meta({ description: 'Reason given by the person.' }),
  })
  .meta({ id: 'TaskInstance', description: 'One task at one time.' });

export class InstanceDto extends createZodDto(instance) {}

export class InstancePageDto extends createZodDto(
  z.object({ instances: z.array(instance), nextPageKey }).meta({ id: 'TaskInstancePage' }),
) {}

export function instanceBody(instance: TaskInstance): InstanceDto {
  return {
    taskInstanceId: instance.taskInstanceId,
    scheduleId: instance.scheduleId,
    facilityId: instance.facilityId,
    name: instance.name,
    dueAtUtc: instance.dueAt.toISOString(),
    status: instance.status,
    completedAtUtc: instance.completedAt?.toISOString() ?? null,
    completedBy: actorBody(
      instance.completedByPersonId,
      instance.completedByName,
      instance.completedByPersona,
    ),
    notes: instance.notes,
    template: templateBody(instance.template),
    cancelledAtUtc: instance.cancelledAt?.toISOString() ?? null,
    cancelledBy: actorBody(
      instance.cancelledByPersonId,
      instance.cancelledByName,
      instance.cancelledByPersona,
    ),
    cancellationCause: instance.cancellationCause,
    cancellationReason: instance.cancellationReason,
  };
}

function actorBody(
  personId: number | null,
  name: string | null,
  persona: number | null,
): InstanceDto['completedBy'] {
  return persona === null ? null : { personId, name, persona };
}

export const PENDING: InstanceDto = {
  taskInstanceId: INSTANCE_ID,
  scheduleId: '0198f2c4-6a1e-4c3b-9d52-7b1f0e6a2c11',
  facilityId: 501,
  name: 'Weekly round',
  dueAtUtc: '2026-03-09T08:00:00.000Z',
  status: 'Pending',
  completedAtUtc: null,
  completedBy: null,
  notes: null,
  template: null,
  cancelledAtUtc: null,
  cancelledBy: null,
  cancellationCause: null,
  cancellationReason: null,
};
export const COMPLETED: InstanceDto = {
  ...PENDING,
  status: 'Completed',
  completedAtUtc: '2026-03-09T08:41:30.000Z',
  completedBy: IVY,
  notes: 'Filter replaced.',
};

export const CANCELLED: InstanceDto = {
  ...PENDING,
  status: 'Cancelled',
  cancelledAtUtc: '2026-03-06T10:00:00.000Z',
  cancelledBy: IVY,
  cancellationCause: 'Person',
  cancellationReason: 'The building is closed that week.',
};

export const COMPLETE_EXAMPLES = {
  now: { summary: 'Completed now', value: {} },
  before: {
    summary: 'Completed earlier, with a note',
    value: { completedAt: '2026-03-09T09:41:30+01:00', notes: 'Filter replaced.' },
  },
};
