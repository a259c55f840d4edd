import type { INestApplication, Type } from '@nestjs/common';
import { METHOD_METADATA } from '@nestjs/common/constants';
import { ModulesContainer } from '@nestjs/core';
import type { RequestBodyObject } from '@nestjs/swagger';
import { documentedAccess } from '@platform/access-tokens';
import type { RouteRequirement } from '@platform/access-tokens';
import { applyDeferredDecorators, OMITTED_RESPONSES } from './decorators';
import { HEALTH_SCHEMAS, HEALTH_TAG, healthPaths } from './health-document';
import { ProblemDto, STANDARD_RESPONSES, standardResponses } from './problem-responses';
import { keepAliases, publicSchemas, tidy } from './schemas';
import type { OpenApiDocument, Operation, ParameterObject } from './schemas';

/** The service-level part of the document. */
export interface AboutApi {
  readonly title: string;
  readonly version: string;
  /** Markdown: the purpose of the service, and how to start using it. */
  readonly description: string;
  /** Groups of operations, in display order. */
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  /** The service's address in development. */
  readonly developmentUrl: string;
}

/** Extension that links a scanned operation to its route. Removed from the finished document. */
const ROUTE = 'x-route';

interface ScannedOperation extends Operation {
  [ROUTE]: string;
  [OMITTED_RESPONSES]?: readonly number[];
}

/**
 * Builds the OpenAPI 3.1 document of an application. Nest and nestjs-zod generate the operations and schemas.
 * This function adds the access requirement of each operation and the standard responses.
 * @throws {Error} when a route lacks part of its description, or the description does not match the route
 */
export async function buildDocument(app: INestApplication, about: AboutApi): Promise<OpenApiDocument> {
  const { document, routes } = await scan(app, about);
  const paths: OpenApiDocument['paths'] = {};
  for (const [path, methods] of Object.entries(document.paths).sort(([a], [b]) => (a < b ? -1 : 1))) {
    for (const [method, operation] of Object.entries(methods))
      (paths[path] ??= {})[method] = finished({ path, method }, operation as ScannedOperation, routes);
  }
  const { openapi, servers, tags, security, components } = document;
  const { title, version, description } = about;
  const used = JSON.stringify([paths, security]);
  const isUsed = ([name]: [string, unknown]): boolean => used.includes(`/responses/${name}"`);
  const isDemanded = ([name]: [string, unknown]): boolean => used.includes(`"${name}":[]`);
  const { schemas, rename } = publicSchemas(components.schemas);
  return rename({
    openapi,
    info: { title, version, description, license: { name: 'MIT', identifier: 'MIT' } },
    servers,
    tags,
    security,
    paths: { ...paths, ...healthPaths() },
    components: {
      schemas,
      responses: Object.fromEntries(Object.entries(STANDARD_RESPONSES).filter(isUsed)),
      securitySchemes: Object.fromEntries(Object.entries(components.securitySchemes).filter(isDemanded)),
    },
  } as OpenApiDocument);
}

/**
 * Scans the application. Loads the scanning packages on first use, so that they do not slow down the start of
 * a service.
 */
async function scan(
  app: INestApplication,
  about: AboutApi,
): Promise<{ document: OpenApiDocument; routes: Routes }> {
  const [swagger, { cleanupOpenApiDoc }] = await Promise.all([
    import('@nestjs/swagger'),
    import('nestjs-zod'),
  ]);
  applyDeferredDecorators(swagger);
  const routes = markRoutes(app, swagger);
  const scanned = swagger.SwaggerModule.createDocument(app, header(new swagger.DocumentBuilder(), about), {
    operationIdFactory: () => '',
    autoTagControllers: false,
    extraModels: [ProblemDto.Output, ...HEALTH_SCHEMAS],
  });
  keepAliases(scanned.components?.schemas ?? {});
  return { document: cleanupOpenApiDoc(scanned) as unknown as OpenApiDocument, routes };
}

/** Access requirements by route name. */
type Routes = ReadonlyMap<string, RouteRequirement>;

type Handler = (...args: unknown[]) => unknown;
type Swagger = typeof import('@nestjs/swagger');

function header(
  builder: InstanceType<Swagger['DocumentBuilder']>,
  { tags, developmentUrl }: AboutApi,
): ReturnType<typeof builder.build> {
  builder.setOpenAPIVersion('3.1.0');
  builder.addServer('/', 'The server that serves this document');
  builder.addServer(developmentUrl, 'The platform in development (`npm start`)');
  for (const tag of [...tags, HEALTH_TAG]) builder.addTag(tag.name, tag.description);
  return builder
    .addSecurityRequirements('accessToken')
    .addSecurity('accessToken', {
      type: 'http',
      scheme: 'bearer',
      bearerFormat: 'JWT',
      description: 'An access token of the authentication service: `Authorization: Bearer <ACCESS_TOKEN>`.',
    })
    .addSecurity('application', {
      type: 'http',
      scheme: 'basic',
      description: 'An application: its key as user name, its shared secret as password.',
    })
    .build();
}

/** Marks every route with an extension that holds its name. Returns the access requirements by that name. */
function markRoutes(app: INestApplication, { ApiExtension }: Swagger): Routes {
  const routes = new Map<string, RouteRequirement>();
  const modules = [...app.get(ModulesContainer).values()];
  for (const { metatype } of modules.flatMap((module) => [...module.controllers.values()])) {
    const controller = metatype as Type;
    const prototype = controller.prototype as Record<string, Handler | undefined>;
    for (const method of Object.getOwnPropertyNames(prototype)) {
      const handler = prototype[method];
      if (typeof handler !== 'function' || !Reflect.hasMetadata(METHOD_METADATA, handler)) continue;
      const name = `${controller.name}.${method}`;
      ApiExtension(ROUTE, name)(prototype, method, { value: handler });
      routes.set(name, documentedAccess(controller, handler));
    }
  }
  return routes;
}

/** Returns the finished operation, without internal extensions. */
function finished(
  place: { readonly path: string; readonly method: string },
  scanned: ScannedOperation,
  routes: Routes,
): Operation {
  const route = scanned[ROUTE];
  const access = routes.get(route);
  const missing = missingParts(scanned);
  if (access === undefined || missing.length > 0)
    throw new Error(`${route}: the route is not documented: ${missing.join(', ')}`);
  const { operationId, tags, summary, deprecated, requestBody } = scanned;
  const description = [scanned.description, access.needs && `Needs ${access.needs}.`]
    .filter(Boolean)
    .join('\n\n');
  const parameters = parametersOf(route, place.path, scanned);
  const standard = Object.entries(standardResponses(access, place.method !== 'get')).filter(
    ([status]) => !scanned[OMITTED_RESPONSES]?.includes(Number(status)),
  );
  return {
    operationId,
    tags,
    summary,
    ...(description === '' ? {} : { description }),
    ...(deprecated === true ? { deprecated } : {}),
    // An empty list means that no credentials are needed. A public route may check credentials itself and
    // then names its scheme.
    security: access.isPublic ? (scanned.security ?? []) : [{ accessToken: [] }],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(requestBody === undefined ? {} : { requestBody: bodyOf(requestBody) }),
    responses: { ...Object.fromEntries(standard), ...scanned.responses },
  } as Operation;
}

function bodyOf({ description, required = true, content }: RequestBodyObject): RequestBodyObject {
  return { ...(description === undefined ? {} : { description }), required, content };
}

/**
 * Returns what is missing from the description of an operation. If a route declares no response, Nest adds
 * one with an empty description.
 */
function missingParts({ operationId, summary, tags = [], responses }: ScannedOperation): string[] {
  const silent = Object.entries(responses).filter(
    ([, response]) => !('$ref' in response) && response.description === '',
  );
  return [
    ...(operationId === '' ? ['no operationId'] : []),
    ...(summary ? [] : ['no summary']),
    ...(tags.length === 1 ? [] : ['not exactly one tag']),
    ...silent.map(([status]) => `no description of its response ${status}`),
  ];
}

const PLACES = ['path', 'query', 'header'];

/** OpenAPI tells readers to ignore header parameters with these names. */
const IGNORED_PARAMETERS = ['accept', 'authorization', 'content-type'];

/**
 * @throws {Error} for a parameter without a description, a described path parameter that is not in the path,
 * or a parameter with an ignored name
 */
function parametersOf(route: string, path: string, scanned: ScannedOperation): ParameterObject[] {
  const isIgnored = ({ name }: ParameterObject): boolean => IGNORED_PARAMETERS.includes(name.toLowerCase());
  // A handler that checks credentials itself reads one of the ignored headers, and declares its scheme with
  // `@ApiSecurity`.
  const parameters = (scanned.parameters ?? []).filter(
    (parameter) => !isIgnored(parameter) || parameter.description !== undefined,
  );
  const described = parameters.filter(({ description }) => description !== undefined);
  // Nest records a header twice: under the lower-case name that the handler reads, and under the proper name
  // of its description.
  const isDescribed = ({ name }: ParameterObject): boolean =>
    described.some((parameter) => parameter.name.toLowerCase() === name.toLowerCase());
  const wrong = parameters.filter(
    (parameter) =>
      !isDescribed(parameter) ||
      isIgnored(parameter) ||
      (parameter.in === 'path' && !path.includes(`{${parameter.name}}`)),
  );
  if (wrong.length > 0) {
    const names = wrong.map(({ name }) => name).join(', ');
    throw new Error(`${route}: parameters do not fit their descriptions: ${names}`);
  }
  const rank = ({ in: place, name }: ParameterObject): number =>
    PLACES.indexOf(place) * path.length + path.indexOf(`{${name}}`);
  return described.sort((a, b) => rank(a) - rank(b)).map(parameterOf);
}

function parameterOf(parameter: ParameterObject): ParameterObject {
  const { name, in: place, required = false, description, schema = {} } = parameter;
  const { example, ...type } = tidy(schema) as Record<string, unknown> & { example?: string | number };
  const isRequired = place === 'path' || required;
  // The docs page pre-fills and sends every parameter that has an example. So optional parameters get no
  // example: a reader who tries an operation rarely wants to send it.
  const isSent = isRequired || 'default' in type;
  const exampleText = example === undefined || isSent ? '' : ` For example \`${String(example)}\`.`;
  return {
    name,
    in: place,
    required: isRequired,
    ...(description === undefined ? {} : { description: description + exampleText }),
    schema: type,
    ...(example === undefined || !isRequired ? {} : { example }),
  };
}
