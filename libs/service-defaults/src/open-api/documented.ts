import { SetMetadata } from '@nestjs/common';
import type { CustomDecorator } from '@nestjs/common';
import type { z } from 'zod';

/** Metadata key of what the API document says of a route. */
export const OPERATION_DOCS = 'platform:operation-docs';

/** A JSON Schema of the 2020-12 dialect, which OpenAPI 3.1 takes as it is. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** An example with its title; the value is a real one. */
export interface ExampleDocs {
  readonly summary: string;
  readonly value: unknown;
}

/** A header of an answer. */
export interface HeaderDocs {
  readonly description: string;
  readonly schema: JsonSchema;
  /** Every answer with this status has it. */
  readonly required?: boolean;
  readonly example?: unknown;
}

/** A parameter in the path, the query or a header. */
export interface ParameterDocs {
  readonly description: string;
  /** Replaces what can be told from the code, e.g. an integer for digits in a query. */
  readonly schema?: JsonSchema;
  readonly example?: unknown;
}

/** One status that an operation answers with. */
export interface AnswerDocs {
  readonly description: string;
  /** What the body is; no body without it. */
  readonly body?: z.ZodType;
  /** `application/json` unless given. */
  readonly contentType?: string;
  readonly examples?: Readonly<Record<string, ExampleDocs>>;
  readonly headers?: Readonly<Record<string, HeaderDocs>>;
  /** Given where the same status may also be answered with a problem, with examples of it. */
  readonly orProblem?: Readonly<Record<string, ExampleDocs>>;
}

/** The body that an operation takes. */
export interface BodyDocs {
  readonly description?: string;
  readonly examples: Readonly<Record<string, ExampleDocs>>;
  /** `application/json` unless given; the first one is shown first. */
  readonly contentTypes?: readonly string[];
  /** Only where the controller's parameters do not tell it. */
  readonly schema?: z.ZodType;
  /** True unless given. */
  readonly required?: boolean;
}

/** What the API document says of a route besides its path, its parameters' schemas and who may call it. */
export interface OperationDocs {
  /** `operationId`: what generators of clients call the method. Never changes. */
  readonly id: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  readonly deprecated?: boolean;
  readonly path?: Readonly<Record<string, ParameterDocs>>;
  readonly query?: Readonly<Record<string, ParameterDocs>>;
  readonly headers?: Readonly<Record<string, ParameterDocs>>;
  readonly body?: BodyDocs;
  /** By status. 401, 403, 413, 415, 500 and 503 are added where they apply, unless given here. */
  readonly answers: Readonly<Record<number, AnswerDocs>>;
  /** Answers without asking anything: never 500 or 503. */
  readonly isStatic?: boolean;
  /** Bodies that are too large or of another type are not answered with 413 and 415 here. */
  readonly hasOwnBodyErrors?: boolean;
}

/** Who may call a route. */
export interface RouteRequirement {
  readonly isPublic: boolean;
  /** In words, to be read after "Needs"; null: any valid token will do. */
  readonly needs: string | null;
}

/** Describes a route in the API document. A route without it keeps the document from being made. */
export function Documented(operation: OperationDocs): CustomDecorator {
  return SetMetadata(OPERATION_DOCS, operation);
}
