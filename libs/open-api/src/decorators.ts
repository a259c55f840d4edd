import { Get, applyDecorators } from '@nestjs/common';
import { Public } from '@platform/access-tokens';
import { PAGE_QUERY_DOCS } from '@platform/service-defaults';

type Swagger = typeof import('@nestjs/swagger');

const pending: ((swagger: Swagger) => void)[] = [];

/**
 * Returns a stand-in for a decorator of @nestjs/swagger. The real one is applied when the document is first
 * built, because loading that package costs 60 ms, and only readers of the document need it.
 */
function deferred<Name extends keyof Swagger>(name: Name): Swagger[Name] {
  type Factory = (...options: unknown[]) => (...target: unknown[]) => void;
  const factory: Factory =
    (...options) =>
    (...target) => {
      pending.push((swagger) => (swagger[name] as Factory)(...options)(...target));
    };
  return factory as Swagger[Name];
}

/** Applies the deferred decorators of all controllers loaded so far. */
export function applyDeferredDecorators(swagger: Swagger): void {
  for (const apply of pending.splice(0)) apply(swagger);
}

export const ApiBody = deferred('ApiBody');
export const ApiConsumes = deferred('ApiConsumes');
const ApiExtension = deferred('ApiExtension');
export const ApiExtraModels = deferred('ApiExtraModels');
export const ApiHeader = deferred('ApiHeader');
export const ApiHeaders = deferred('ApiHeaders');
export const ApiOperation = deferred('ApiOperation');
export const ApiParam = deferred('ApiParam');
export const ApiQuery = deferred('ApiQuery');
export const ApiResponse = deferred('ApiResponse');
export const ApiSecurity = deferred('ApiSecurity');
export const ApiTags = deferred('ApiTags');
export const ApiOkResponse = deferred('ApiOkResponse');
export const ApiCreatedResponse = deferred('ApiCreatedResponse');
export const ApiNoContentResponse = deferred('ApiNoContentResponse');

/** Extension with the standard responses that a route never sends. Removed from the finished document. */
export const OMITTED_RESPONSES = 'x-omitted-responses';

/**
 * Removes these standard responses (401, 403, 413, 415, 500, 503) from the route's documentation, because it
 * never sends them.
 */
export function OmitStandardResponses(...statuses: readonly number[]): MethodDecorator & ClassDecorator {
  return applyDecorators(ApiExtension(OMITTED_RESPONSES, statuses));
}

/** Declares that the route depends on nothing, so that it can neither fail nor be unavailable. */
export const NeverFails = (): MethodDecorator & ClassDecorator => OmitStandardResponses(500, 503);

/**
 * Describes `pageKeyQuery` and `pageSizeQuery` of a paged list, because zod drops the default of a schema
 * that transforms its input.
 */
export function PagedQuery(): MethodDecorator {
  const { pageKey, pageSize } = PAGE_QUERY_DOCS;
  const schema = { ...pageSize.schema, example: pageSize.example };
  return applyDecorators(
    ApiQuery({ name: 'pageKey', required: false, description: pageKey.description }),
    ApiQuery({ name: 'pageSize', required: false, description: pageSize.description, schema }),
  );
}

/** A route that always responds with the same word. */
export function PingRoute(word: string): MethodDecorator {
  return applyDecorators(
    Get('ping'),
    ApiOperation({ operationId: 'ping', summary: `Responds with "${word}"` }),
    ApiOkResponse({
      description: 'A JSON string.',
      schema: { type: 'string', const: word } as object,
      examples: { pong: { summary: 'The response', value: word } },
    }),
    NeverFails(),
    Public(),
  );
}
