import { z } from 'zod';

/**
 * Which of the platform's two bus instances carries a message. Source: task messaging spec, "What the service
 * does" 4.
 */
export type Bus = 'main' | 'scheduling';

/**
 * What two services agree on for one message type. Messages only grow; a breaking change is a new `…V2` type.
 */
export interface MessageContract<T> {
  /** Wire name, verbatim, without namespace: `IBusinessUnitChangeV1`. */
  readonly name: string;
  readonly bus: Bus;
  /** One sentence: who sends it, who receives it, what it means. */
  readonly description: string;
  /**
   * Whether the message is lost work without a receiver: it is then not sent until a queue takes it. Other
   * events are facts: they are sent whether or not anybody subscribes.
   */
  readonly needsReceiver: boolean;
  /** Strict about the fields it knows; fields it does not know are dropped, never refused. */
  readonly schema: z.ZodType<T>;
}

/** A message whose receiver responds with exactly one of two messages. */
export interface RequestContract<T, S, F> extends MessageContract<T> {
  readonly succeeded: MessageContract<S>;
  readonly failed: MessageContract<F>;
}

/** The TypeScript type of a contract's message. */
export type MessageOf<C> = C extends MessageContract<infer T> ? T : never;

interface MessageDefinition<S extends z.ZodType> {
  readonly name: string;
  readonly bus: Bus;
  readonly description: string;
  /** False unless given. */
  readonly needsReceiver?: boolean;
  readonly schema: S;
}

/** Declares a message type; the schema fixes the message's TypeScript type. */
export function defineMessage<S extends z.ZodType>(
  definition: MessageDefinition<S>,
): MessageContract<z.output<S>> {
  const schema = definition.schema as unknown as z.ZodType<z.output<S>>;
  return Object.freeze({ needsReceiver: false, ...definition, schema });
}

/** Declares a request together with its two responses; a request always needs its receiver. */
export function defineRequest<R extends z.ZodType, S, F>(
  definition: MessageDefinition<R> & {
    readonly succeeded: MessageContract<S>;
    readonly failed: MessageContract<F>;
  },
): RequestContract<z.output<R>, S, F> {
  const schema = definition.schema as unknown as z.ZodType<z.output<R>>;
  return Object.freeze({ ...definition, needsReceiver: true, schema });
}

/** Whether a contract expects a response. */
export function isRequest(
  contract: MessageContract<unknown>,
): contract is RequestContract<unknown, unknown, unknown> {
  return 'succeeded' in contract;
}

/** The message as JSON Schema 2020-12, as a sender must write it. Unknown fields stay allowed. */
export function messageJsonSchema(contract: MessageContract<unknown>): Record<string, unknown> {
  const schema = z.toJSONSchema(contract.schema, { io: 'input', target: 'draft-2020-12' });
  return { ...schema, title: contract.name, description: contract.description };
}

/** A facility's or business unit's number: an integer that survives a double. */
export const integerId = z.int();

/**
 * Any 128-bit identifier in the 8-4-4-4-12 form. Not `z.uuid()`: the sequential identifiers of .NET clients
 * carry no RFC 9562 version.
 */
export const identifier = z.guid();

/**
 * An ISO 8601 instant with `Z` or an offset; a local time without one is refused, because it names no
 * instant.
 */
export const instant = z.iso.datetime({ offset: true });

/**
 * IANA time zone name. Whether the zone exists is the receiver's decision, so that the tz database may grow.
 */
export const timeZone = z.string().min(1).max(100);

/** A cron expression; only the receiver judges its five fields, so that it can answer with a reason. */
export const cron = z.string().min(1).max(200);

/** Who did something: internal users have no person number, and `persona` is the sum of the persona bits. */
export const actor = z.object({
  personId: z.int().nullable(),
  name: z.string().nullable(),
  persona: z.int(),
});

/** Who did something. Source: docs/spec-gaps.md. */
export type Actor = z.output<typeof actor>;
