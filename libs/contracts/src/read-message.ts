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

/** The contract's message out of parsed JSON, as generously as MassTransit reads it: property names match in any case, and null
 *  stands for an absent optional field. Unknown fields are dropped. @throws {InvalidMessageError} if a known field is wrong. */
export function readMessage<T>(contract: MessageContract<T>, json: unknown): T {
  const result = contract.schema.safeParse(aligned(contract.schema, json));
  if (result.success) return result.data;
  throw new InvalidMessageError(
    contract.name,
    // A long list may be wrong in every item.
    result.error.issues
      .slice(0, MAX_ISSUES)
      .map((issue) => `${issue.path.join('.') || '(message)'}: ${issue.message}`),
  );
}

/** `json` with its property names spelt as in `schema`. */
function aligned(schema: unknown, json: unknown): unknown {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable)
    return aligned(schema.unwrap(), json);
  if (schema instanceof z.ZodArray)
    return Array.isArray(json) ? json.map((item) => aligned(schema.element, item)) : json;
  if (!(schema instanceof z.ZodObject) || json === null || typeof json !== 'object' || Array.isArray(json))
    return json;
  return alignedObject(schema, json as Record<string, unknown>);
}

function alignedObject(schema: z.ZodObject, json: Record<string, unknown>): Record<string, unknown> {
  let byLowerName: Map<string, string> | undefined;
  const foreignSpelling = (field: string): string | undefined => {
    byLowerName ??= new Map(Object.keys(json).map((key) => [key.toLowerCase(), key]));
    return byLowerName.get(field.toLowerCase());
  };
  const result: Record<string, unknown> = {};
  for (const [field, fieldSchema] of Object.entries(schema.shape)) {
    const key = Object.hasOwn(json, field) ? field : foreignSpelling(field);
    if (key === undefined) continue;
    const value = json[key];
    if (value === null && fieldSchema instanceof z.ZodOptional) continue;
    result[field] = aligned(fieldSchema, value);
  }
  return result;
}
