import { z } from 'zod';
import type { MessageContract } from './message-contract';

/** Maximum number of issues in an error. */
const MAX_ISSUES = 20;

/** A message does not satisfy its contract. The text names fields and rules, never values. */
export class InvalidMessageError extends Error {
  override readonly name = 'InvalidMessageError';
  constructor(
    readonly messageName: string,
    readonly issues: readonly string[],
  ) {
    super(`${messageName} does not satisfy its contract: ${issues.join('; ')}`);
  }
}

/**
 * Reads a message from parsed JSON as leniently as MassTransit does: property names match in any letter case,
 * and null counts as absent for an optional field. Drops unknown fields.
 * @throws {InvalidMessageError} if a known field is invalid
 */
export function readMessage<T>(contract: MessageContract<T>, json: unknown): T {
  const result = contract.schema.safeParse(alignerOf(contract.schema)(json));
  if (result.success) return result.data;
  throw new InvalidMessageError(
    contract.name,
    // Limited, because every item of a long list may be invalid.
    result.error.issues
      .slice(0, MAX_ISSUES)
      .map((issue) => `${issue.path.join('.') || '(message)'}: ${issue.message}`),
  );
}

/** Renames the properties of parsed JSON to the spelling of a schema. */
type Align = (json: unknown) => unknown;

const aligners = new WeakMap<z.ZodType, Align>();

/** Memoised per schema: traversing a schema costs more than reading a message. */
function alignerOf(schema: z.ZodType): Align {
  let aligner = aligners.get(schema);
  if (aligner === undefined) aligners.set(schema, (aligner = makeAligner(schema)));
  return aligner;
}

function makeAligner(schema: unknown): Align {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) return makeAligner(schema.unwrap());
  if (schema instanceof z.ZodArray) {
    const align = makeAligner(schema.element);
    return (json) => (Array.isArray(json) ? json.map(align) : json);
  }
  return schema instanceof z.ZodObject ? objectAligner(schema) : (json) => json;
}

function objectAligner(schema: z.ZodObject): Align {
  const fields = Object.entries(schema.shape).map(([name, field]) => ({
    name,
    lowerName: name.toLowerCase(),
    isOptional: field instanceof z.ZodOptional,
    align: makeAligner(field),
  }));
  return (json) => {
    if (json === null || typeof json !== 'object' || Array.isArray(json)) return json;
    const given = json as Record<string, unknown>;
    let byLowerName: Map<string, string> | undefined;
    const result: Record<string, unknown> = {};
    for (const { name, lowerName, isOptional, align } of fields) {
      let key: string | undefined = name;
      if (!Object.hasOwn(given, name)) {
        byLowerName ??= new Map(Object.keys(given).map((each) => [each.toLowerCase(), each]));
        key = byLowerName.get(lowerName);
      }
      if (key === undefined) continue;
      const value = given[key];
      if (value === null && isOptional) continue;
      result[name] = align(value);
    }
    return result;
  };
}
