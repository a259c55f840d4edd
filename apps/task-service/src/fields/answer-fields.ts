import { problemAnswer, problemExample } from '@platform/service-defaults';
import type { AnswerDocs, ParameterDocs } from '@platform/service-defaults';
import { z } from 'zod';
import { TASK_PROBLEMS } from '../problems/task-error';
import type { TaskErrorReason } from '../problems/task-error';

/** Fields of answers, for the API document. */

export const facilityId = z.int().meta({ description: 'The facility.', examples: [501] });
export const timeZone = z
  .string()
  .meta({ description: 'IANA time zone of the cron expression.', examples: ['Europe/Berlin'] });
export const cron = z
  .string()
  .meta({ description: 'Cron expression with five fields.', examples: ['0 9 * * 1'] });
export const instant = (description: string): z.ZodString =>
  z.string().meta({ format: 'date-time', description });
export const identifier = (description: string): z.ZodString =>
  z.string().meta({ format: 'uuid', description });

/** Who did something. */
export const actor = z
  .object({
    personId: z.int().nullable().meta({ description: 'Null for internal users.' }),
    name: z.string().nullable(),
    persona: z.int().meta({
      description: 'Persona bits: 1 InternalPartner, 2 Customer, 4 ServiceProvider, 8 Resident, 16 Owner.',
    }),
  })
  .meta({ id: 'Actor', description: 'Who did something.' });

export const IVY = { personId: null, name: 'Ivy Internal', persona: 1 };

/** An answer that says why the request was refused. */
export function taskProblem(
  description: string,
  instance: string,
  ...reasons: readonly TaskErrorReason[]
): AnswerDocs {
  const examples = reasons.map((reason) => {
    const problem = TASK_PROBLEMS[reason];
    return [reason, problemExample(problem.detail, problem, instance)] as const;
  });
  return problemAnswer(description, Object.fromEntries(examples));
}

/** 400 for a field that is not valid. */
export function invalidField(instance: string, field: string, message: string): AnswerDocs {
  const problem = { status: 400, detail: 'The request is not valid.', errors: { [field]: [message] } };
  return problemAnswer('The request is not valid; `errors` tells why.', {
    field: problemExample('A field is not valid', problem, instance),
  });
}

/** Query parameter of the lists. */
export const FACILITY_QUERY: Readonly<Record<string, ParameterDocs>> = {
  facilityId: {
    description: "Only this facility's. Without it: all facilities of the caller.",
    schema: { type: 'integer', minimum: 1 },
    example: 501,
  },
};
