import { z } from 'zod';

/** The bus instance that carries a message. Source: task messaging spec, "What the service does" 4. */
export type Bus = 'main' | 'scheduling';

/**
 * The contract between services for one message type. Messages only grow; a breaking change is a new `…V2`
 * type.
 */
export interface MessageContract<T> {
  /** Wire name without namespace, for example `IBusinessUnitChangeV1`. */
  readonly name: string;
  readonly bus: Bus;
  /** Sender, receiver and meaning of the message. */
  readonly description: string;
  /**
   * True if the message is work that would be lost without a receiver: it is not sent until a queue is bound
   * for it. Other events are facts and are sent whether or not anybody subscribes.
   */
  readonly needsReceiver: boolean;
  /** Validates known fields strictly; drops unknown fields and never refuses them. */
  readonly schema: z.ZodType<T>;
}

/** A message whose receiver replies with exactly one of two messages. */
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
  /** Default false. */
  readonly needsReceiver?: boolean;
  readonly schema: S;
}

/** Declares a message type. The schema determines its TypeScript type. */
export function defineMessage<S extends z.ZodType>(
  definition: MessageDefinition<S>,
): MessageContract<z.output<S>> {
  const schema = definition.schema as unknown as z.ZodType<z.output<S>>;
  return Object.freeze({ needsReceiver: false, ...definition, schema });
}

/** Declares a request with its two replies. A request always needs a receiver. */
export function defineRequest<R extends z.ZodType, S, F>(
  definition: MessageDefinition<R> & {
    readonly succeeded: MessageContract<S>;
    readonly failed: MessageContract<F>;
  },
): RequestContract<z.output<R>, S, F> {
  const schema = definition.schema as unknown as z.ZodType<z.output<R>>;
  return Object.freeze({ ...definition, needsReceiver: true, schema });
}

/** Returns true if the message expects a reply. */
export function isRequest(
  contract: MessageContract<unknown>,
): contract is RequestContract<unknown, unknown, unknown> {
  return 'succeeded' in contract;
}

/** Returns the JSON Schema (2020-12) of the message as a sender must write it. Unknown fields are allowed. */
export function messageJsonSchema(contract: MessageContract<unknown>): Record<string, unknown> {
  const schema = z.toJSONSchema(contract.schema, { io: 'input', target: 'draft-2020-12' });
  return { ...schema, title: contract.name, description: contract.description };
}

/** The number of a facility or business unit: an integer that a double represents exactly. */
export const integerId = z.int();

/**
 * Any 128-bit identifier in the 8-4-4-4-12 form. Not `z.uuid()`, because the sequential identifiers of .NET
 * clients have no RFC 9562 version.
 */
export const identifier = z.guid();

/**
 * An ISO 8601 date-time with `Z` or an offset. A local time without one is refused, because it is ambiguous.
 */
export const instant = z.iso.datetime({ offset: true });

/**
 * An IANA time zone name. Only the receiver checks that the zone exists, because the tz database may grow.
 */
export const timeZone = z.string().min(1).max(100);

/** A cron expression. Only the receiver validates its five fields, so that it can reply with a reason. */
export const cron = z.string().min(1).max(200);

/** The person who acted. Internal users have no `personId`. `persona` is the sum of the persona bits. */
export const actor = z.object({
  personId: z.int().nullable(),
  name: z.string().nullable(),
  persona: z.int(),
});

/** The person who acted. Source: docs/spec-gaps.md. */
export type Actor = z.output<typeof actor>;
