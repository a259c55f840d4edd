import { Injectable } from '@nestjs/common';
import type { ArgumentMetadata, PipeTransform } from '@nestjs/common';
import { isZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { problems } from './problem';
import type { ProblemException } from './problem';

// Not from `nestjs-zod` itself: that loads @nestjs/swagger.

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
@Injectable()
export class ServiceValidationPipe implements PipeTransform {
  transform(value: unknown, { metatype }: ArgumentMetadata): unknown {
    return isZodDto(metatype) ? validated(metatype.schema, value) : value;
  }
}

/** Validates one parameter by a schema that is not the one of its type. */
export function validatedBy(schema: Parser): PipeTransform {
  return { transform: (value: unknown) => validated(schema, value) };
}

interface Parser {
  parse(value: unknown, context?: z.core.ParseContext<z.core.$ZodIssue>): unknown;
}

const FORMATS: Partial<Record<string, string>> = {
  date: 'must be a date such as 2026-04-01',
  datetime: 'must be a date and time with an offset, such as 2026-04-01T09:00:00Z',
  guid: 'must be a UUID',
  uuid: 'must be a UUID',
};
const TYPES: Partial<Record<string, string>> = {
  ...{ string: 'a string', number: 'a number', int: 'an integer', boolean: 'true or false' },
  ...{ array: 'an array', object: 'an object', record: 'an object' },
};

/** Where a schema says nothing itself, callers read of JSON, not of JavaScript's types; undefined: zod's own text. */
const messageOf: z.core.$ZodErrorMap = (issue) => {
  if (issue.code === 'invalid_format') return FORMATS[issue.format];
  if (issue.code !== 'invalid_type') return undefined;
  if (issue.input === undefined) return 'is missing';
  const type = TYPES[issue.expected];
  return type === undefined ? undefined : `must be ${type}`;
};

function validated(schema: Parser, value: unknown): unknown {
  try {
    return schema.parse(value, { error: messageOf });
  } catch (error) {
    throw validationProblem(error);
  }
}
