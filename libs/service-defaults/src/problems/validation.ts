import { Injectable } from '@nestjs/common';
import type { ArgumentMetadata, PipeTransform } from '@nestjs/common';
import { isZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { findOverlongList } from './list-bounds';
import { problems } from './problem';
import type { ProblemException } from './problem';

// `isZodDto` is not imported from `nestjs-zod` itself, which loads @nestjs/swagger.

/** Maximum number of fields that one response names. */
const MAX_FIELDS = 50;
/** Maximum number of unknown members that one message names. */
const MAX_NAMES = 5;

/**
 * Returns a 400 with messages by field (`a.b.0`; `request` for the whole). Messages describe the expected
 * value and never quote the sent one.
 */
export function validationProblem(error: unknown): ProblemException {
  // A Map, because an object has members such as `constructor` from the start.
  const errors = new Map<string, string[]>();
  const issues = error instanceof z.ZodError ? error.issues : [];
  for (const issue of issues) {
    const field = issue.path.map(String).join('.') || 'request';
    const messages = errors.get(field);
    if (messages !== undefined) messages.push(textOf(issue));
    else if (errors.size < MAX_FIELDS) errors.set(field, [textOf(issue)]);
  }
  return problems.badRequest('The request is not valid.', Object.fromEntries(errors));
}

/** Returns the message of an issue. zod's own message would quote every unknown name in full. */
function textOf(issue: z.core.$ZodIssue): string {
  if (issue.code !== 'unrecognized_keys') return issue.message;
  const shown = issue.keys.slice(0, MAX_NAMES).map((name) => JSON.stringify(name.slice(0, 100)));
  const more = issue.keys.length - shown.length;
  const rest = more > 0 ? ` and ${String(more)} more` : '';
  return `Unrecognized key${issue.keys.length === 1 ? '' : 's'}: ${shown.join(', ')}${rest}`;
}

/** Validates parameters whose type is a class created by `createZodDto`. */
@Injectable()
export class ServiceValidationPipe implements PipeTransform {
  transform(value: unknown, { metatype }: ArgumentMetadata): unknown {
    return isZodDto(metatype) ? validated(metatype.schema, value) : value;
  }
}

/** Returns a pipe that validates one parameter by a schema other than its type's. */
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
  string: 'a string',
  number: 'a number',
  int: 'an integer',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
  record: 'an object',
};

/**
 * Returns the default message of an issue, in terms of JSON rather than of JavaScript's types; undefined
 * selects zod's own text.
 */
const messageOf: z.core.$ZodErrorMap = (issue) => {
  if (issue.code === 'invalid_format') return FORMATS[issue.format];
  if (issue.code !== 'invalid_type') return undefined;
  if (issue.input === undefined) return 'is missing';
  const type = TYPES[issue.expected];
  return type === undefined ? undefined : `must be ${type}`;
};

function validated(schema: Parser, value: unknown): unknown {
  const overlong = schema instanceof z.ZodType ? findOverlongList(schema, value) : null;
  if (overlong !== null) {
    const message = `Too big: expected array to have <=${String(overlong.maxItems)} items`;
    throw problems.badRequest('The request is not valid.', { [overlong.path.join('.')]: [message] });
  }
  try {
    return schema.parse(value, { error: messageOf });
  } catch (error) {
    throw validationProblem(error);
  }
}
