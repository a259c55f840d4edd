import { z } from 'zod';
import type { MessageContract } from './message-contract';

/** Most issues that an error names. */
const MAX_ISSUES = 20;

/** A message that does not satisfy its contract. The text names fields and rules, never the values. */
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
 * The contract's message out of parsed JSON, as generously as MassTransit reads it: property names match in
 * any case, and null stands for an absent optional field. Unknown fields are dropped.
 * @throws {InvalidMessageError} if a known field is wrong.
 */
export function readMessage<T>(contract: MessageContract<T>, json: unknown): T {
  const result = contract.schema.safeParse(alignerOf(contract.schema)(json));
  if (result.success) return result.data;
  throw new InvalidMessageError(
    contract.name,
    // A long list may be wrong in every item.
    result.error.issues
      .slice(0, MAX_ISSUES)
      .map((issue) => `${issue.path.join('.') || '(message)'}: ${issue.message}`),
  );
}

/** Spells the property names of parsed JSON as a schema does. */
type Align = (json: unknown) => unknown;

const aligners = new WeakMap<z.ZodType, Align>();

/** Looking through a schema costs more than a message does, so it is done once. */
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
