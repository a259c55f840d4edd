import { Get, applyDecorators } from '@nestjs/common';
import { Public } from '@platform/access-tokens';
import { PAGE_QUERY_DOCS } from '@platform/service-defaults';

type Swagger = typeof import('@nestjs/swagger');

const pending: ((swagger: Swagger) => void)[] = [];

/**
 * The decorator of this name of @nestjs/swagger, applied when the document is first built. Loading that
 * package costs a start 60 ms and is needed only by those who read the document.
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

/** Applies the decorators of all controllers loaded so far. */
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

/** Extension in which a route says which standard responses it never sends; the document does not show it. */
export const OMITTED_RESPONSES = 'x-omitted-responses';

/**
 * The route never sends these of the responses that every operation has otherwise (401, 403, 413, 415, 500,
 * 503).
 */
export function OmitStandardResponses(...statuses: readonly number[]): MethodDecorator & ClassDecorator {
  return applyDecorators(ApiExtension(OMITTED_RESPONSES, statuses));
}

/** The route asks nothing of anybody: it can neither fail nor be unavailable. */
export const NeverFails = (): MethodDecorator & ClassDecorator => OmitStandardResponses(500, 503);

/**
 * Describes `pageKeyQuery` and `pageSizeQuery` of a paged list: zod drops the default of a schema that
 * transforms its input.
 */
export function PagedQuery(): MethodDecorator {
  const { pageKey, pageSize } = PAGE_QUERY_DOCS;
  const schema = { ...pageSize.schema, example: pageSize.example };
  return applyDecorators(
    ApiQuery({ name: 'pageKey', required: false, description: pageKey.description }),
    ApiQuery({ name: 'pageSize', required: false, description: pageSize.description, schema }),
  );
}

/** A route that responds with one word whatever happens. */
export function PingRoute(word: string): MethodDecorator {
  return applyDecorators(
    Get('ping'),
    ApiOperation({ operationId: 'ping', summary: `Answer "${word}"` }),
    ApiOkResponse({
      description: 'A JSON string.',
      schema: { type: 'string', const: word } as object,
      examples: { pong: { summary: 'The answer', value: word } },
    }),
    NeverFails(),
    Public(),
  );
}
