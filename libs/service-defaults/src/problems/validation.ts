import { createZodValidationPipe } from 'nestjs-zod';
import { z } from 'zod';
import type { ProblemException } from './problem-exception';
import { problems } from './problem-exception';

/** 400 with what is wrong by field (`a.b.0`; `request` for the whole). Messages say what is expected, never what was sent. */
export function validationProblem(error: unknown): ProblemException {
  const errors: Record<string, string[]> = {};
  const issues = error instanceof z.ZodError ? error.issues : [];
  for (const { path, message } of issues) {
    const field = path.map(String).join('.') || 'request';
    (errors[field] ??= []).push(message);
  }
  return problems.badRequest('The request is not valid.', errors);
}

/** Validates parameters whose type is a class made by `createZodDto`. */
export const ServiceValidationPipe = createZodValidationPipe({
  createValidationException: validationProblem,
});
