import { z } from 'zod';
import type { MessageContract } from './message-contract';

/** The message as JSON Schema 2020-12, as a sender must write it. Unknown fields stay allowed. */
export function messageJsonSchema(contract: MessageContract<unknown>): Record<string, unknown> {
  const schema = z.toJSONSchema(contract.schema, { io: 'input', target: 'draft-2020-12' });
  return { ...schema, title: contract.name, description: contract.description };
}
