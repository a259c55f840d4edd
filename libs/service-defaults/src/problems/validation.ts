import { createZodValidationPipe } from 'nestjs-zod';
import { z } from 'zod';
import type { ProblemException } from './problem-exception';
import { problems } from './problem-exception';

/** 400 with what is wrong by field (`a.b.0`; `request` for the whole). Messages say what is expected, never what was sent. */
export function validationProblem(error: unknown): ProblemException {
  // A map: an object has a `constructor` and a `toString` before anything was entered.
  const errors = new Map<string, string[]>();
  const issues = error instanceof z.ZodError ? error.issues : [];
  for (const { path, message } of issues) {
    const field = path.map(String).join('.') || 'request';
    errors.set(field, [...(errors.get(field) ?? []), message]);
  }
  return problems.badRequest('The request is not valid.', Object.fromEntries(errors));
}

/** Validates parameters whose type is a class made by `createZodDto`. */
export const ServiceValidationPipe = createZodValidationPipe({
  createValidationException: validationProblem,
});
