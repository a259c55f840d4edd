import type { INestApplication, Type } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import type { OpenApiDocument, OperationObject } from './document';
import { OPERATION_DOCS } from './documented';
import type { ApiDocs, OperationDocs, RouteRequirement } from './documented';
import { healthPaths } from './health-docs';
import { operationObject, responseObject } from './operation-object';
import type { ScannedOperation } from './operation-object';
import { SchemaComponents, requestSchemaName, tidy } from './schema-components';
import { STANDARD_ANSWERS } from './standard-answers';

/** What the document says about the service as a whole. */
export interface DocumentSubject {
  readonly title: string;
  readonly version: string;
  readonly api: ApiDocs;
}

interface Route {
  readonly docs: OperationDocs | undefined;
  readonly access: RouteRequirement;
}

type Handler = (...args: unknown[]) => unknown;
type Scanned = ScannedOperation & { operationId?: string };

/**
 * The OpenAPI 3.1 document of an application: its routes, parameters and schemas are read from the code, the words from
 * `@Documented`. @throws {Error} when a route has no words, or they do not fit it
 */
export async function buildDocument(
  app: INestApplication,
  subject: DocumentSubject,
): Promise<OpenApiDocument> {
  const scanned = await scan(app);
  const routes = routesOf(app, subject.api);
  const schemas = new SchemaComponents();
  for (const [name, schema] of Object.entries(scanned.components?.schemas ?? {}))
    schemas.add(requestSchemaName(name), tidy(schema));
  const paths: OpenApiDocument['paths'] = {};
  for (const [path, methods] of Object.entries(scanned.paths)) {
    for (const [method, operation] of Object.entries(methods))
      (paths[path] ??= {})[method] = operationOf({ path, method }, operation, routes, schemas);
  }
  const used = JSON.stringify(paths);
  const responses = Object.fromEntries(
    Object.entries(STANDARD_ANSWERS)
      .filter(([name]) => used.includes(`#/components/responses/${name}"`))
      .map(([name, answer]) => [name, responseObject(answer, schemas)]),
  );
  return {
    openapi: '3.1.0',
    ...aboutService(subject),
    paths: { ...sortedByName(paths), ...healthPaths(schemas) },
    components: { schemas: schemas.sorted(), responses, securitySchemes: SECURITY_SCHEMES },
  };
}

const SECURITY_SCHEMES = {
  accessToken: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'An access token of the authentication service: `Authorization: Bearer <ACCESS_TOKEN>`.',
  },
};

function aboutService({
  title,
  version,
  api,
}: DocumentSubject): Pick<OpenApiDocument, 'info' | 'servers' | 'tags' | 'security'> {
  const licence = { name: 'MIT', identifier: 'MIT' };
  const health = { name: 'Health', description: 'What an orchestrator asks. No token needed.' };
  return {
    info: { title, version, description: api.description, license: licence },
    servers: [
      { url: '/', description: 'The server that serves this document' },
      { url: api.developmentUrl, description: 'The platform in development (`npm start`)' },
    ],
    tags: [...api.tags, health],
    security: [{ accessToken: [] }],
  };
}

interface ScannedDocument {
  paths: Record<string, Record<string, Scanned>>;
  components?: { schemas?: Record<string, Record<string, unknown>> };
}

/** Loaded when first needed: a service starts without it. */
async function scan(app: INestApplication): Promise<ScannedDocument> {
  const [{ DocumentBuilder, SwaggerModule }, { cleanupOpenApiDoc }] = await Promise.all([
    import('@nestjs/swagger'),
    import('nestjs-zod'),
  ]);
  const settings = new DocumentBuilder().setOpenAPIVersion('3.1.0').build();
  const document = SwaggerModule.createDocument(app, settings, { operationIdFactory: routeName });
  return cleanupOpenApiDoc(document) as unknown as ScannedDocument;
}

function routeName(controller: string, method: string): string {
  return `${controller}.${method}`;
}

function routesOf(app: INestApplication, api: ApiDocs): ReadonlyMap<string, Route> {
  const modules = [...app.get(ModulesContainer).values()];
  const controllers = modules.flatMap((module) => [...module.controllers.values()]);
  const routes = new Map<string, Route>();
  for (const { metatype } of controllers) {
    const controller = metatype as Type;
    for (const method of Object.getOwnPropertyNames(controller.prototype)) {
      const handler = (controller.prototype as Record<string, Handler>)[method] as Handler;
      const docs = Reflect.getMetadata(OPERATION_DOCS, handler) as OperationDocs | undefined;
      routes.set(routeName(controller.name, method), { docs, access: api.accessOf(controller, handler) });
    }
  }
  return routes;
}

function operationOf(
  place: { path: string; method: string },
  scanned: Scanned,
  routes: ReadonlyMap<string, Route>,
  schemas: SchemaComponents,
): OperationObject {
  const name = scanned.operationId ?? place.path;
  const route = routes.get(name);
  if (route?.docs === undefined) throw new Error(`${name}: the route is not documented`);
  try {
    return operationObject(place, scanned, { docs: route.docs, access: route.access }, schemas);
  } catch (cause) {
    throw new Error(`${name}: the words do not fit the route: ${(cause as Error).message}`, { cause });
  }
}

function sortedByName<T>(record: Record<string, T>): Record<string, T> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
}
