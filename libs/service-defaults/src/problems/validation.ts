import { Injectable } from '@nestjs/common';
import type { ArgumentMetadata, PipeTransform } from '@nestjs/common';
import { isZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { findOverlongList } from './list-bounds';
import { problems } from './problem';
import type { ProblemException } from './problem';

// Not from `nestjs-zod` itself: that loads @nestjs/swagger.

/** Fields that one response names: who sends a thousand wrong ones learns as much from the first. */
const MAX_FIELDS = 50;
/** Names of unknown members that one message quotes. */
const MAX_NAMES = 5;

/**
 * 400 with what is wrong by field (`a.b.0`; `request` for the whole). Messages say what is expected, never
 * what was sent.
 */
export function validationProblem(error: unknown): ProblemException {
  // A map: an object has a `constructor` and a `toString` before anything was entered.
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

/** zod quotes every unknown name, however many and however long they are. */
function textOf(issue: z.core.$ZodIssue): string {
  if (issue.code !== 'unrecognized_keys') return issue.message;
  const shown = issue.keys.slice(0, MAX_NAMES).map((name) => JSON.stringify(name.slice(0, 100)));
  const more = issue.keys.length - shown.length;
  const rest = more > 0 ? ` and ${String(more)} more` : '';
  return `Unrecognized key${issue.keys.length === 1 ? '' : 's'}: ${shown.join(', ')}${rest}`;
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
  string: 'a string',
  number: 'a number',
  int: 'an integer',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
  record: 'an object',
};

/**
 * Where a schema says nothing itself, callers read of JSON, not of JavaScript's types; undefined: zod's own
 * text.
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
