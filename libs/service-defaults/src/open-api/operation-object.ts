import { PROBLEM_JSON } from '../problems/problem';
import { problemBody } from './answers';
import type {
  MediaTypeObject,
  OperationObject,
  ParameterObject,
  Reference,
  RequestBodyObject,
  ResponseObject,
} from './document';
import type { AnswerDocs, BodyDocs, OperationDocs, ParameterDocs, RouteRequirement } from './documented';
import { requestSchemaName, tidy } from './schema-components';
import type { SchemaComponents } from './schema-components';
import { standardAnswersOf } from './standard-answers';

const JSON_TYPE = 'application/json';

/** What Nest's scanner knows of a route. */
export interface ScannedOperation {
  readonly parameters?: readonly ParameterObject[];
  readonly requestBody?: RequestBodyObject;
}

/** One operation, from what the code says and what was written about it.
 *  @throws {Error} when the two do not fit: a parameter without words, or words without a parameter */
export function operationObject(
  { path, method }: { path: string; method: string },
  scanned: ScannedOperation,
  about: { docs: OperationDocs; access: RouteRequirement },
  schemas: SchemaComponents,
): OperationObject {
  const { docs, access } = about;
  const requestBody = docs.body && requestBodyObject(docs.body, scanned.requestBody, schemas);
  if (docs.body === undefined && scanned.requestBody !== undefined) throw new Error('its body has no words');
  const description = [docs.description, access.needs && `Needs ${access.needs}.`]
    .filter(Boolean)
    .join('\n\n');
  const parameters = parametersOf(path, scanned, docs);
  return {
    ...{ operationId: docs.id, tags: [docs.tag], summary: docs.summary },
    ...(description === '' ? {} : { description }),
    ...(docs.deprecated === true ? { deprecated: true as const } : {}),
    // No name in the list: nothing is needed.
    ...(access.isPublic ? { security: [] } : { security: [{ accessToken: [] }] }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(requestBody === undefined ? {} : { requestBody }),
    responses: answersOf(docs, standardAnswersOf(docs, access, method !== 'get'), schemas),
  };
}

function answersOf(
  docs: OperationDocs,
  standard: ReturnType<typeof standardAnswersOf>,
  schemas: SchemaComponents,
): OperationObject['responses'] {
  const answers: Record<string, ResponseObject | Reference> = {};
  for (const [status, name] of Object.entries(standard))
    answers[status] = { $ref: `#/components/responses/${name}` };
  for (const [status, answer] of Object.entries(docs.answers))
    answers[status] = responseObject(answer, schemas);
  return answers;
}

/** One answer as the document has it. */
export function responseObject(answer: AnswerDocs, schemas: SchemaComponents): ResponseObject {
  const { description, body, contentType = JSON_TYPE, examples = {}, headers = {}, orProblem } = answer;
  const content = {
    ...(body === undefined ? {} : { [contentType]: media(schemas.schemaOf(body), examples) }),
    ...(orProblem === undefined ? {} : { [PROBLEM_JSON]: media(schemas.schemaOf(problemBody), orProblem) }),
  };
  return {
    description,
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
    ...(Object.keys(content).length === 0 ? {} : { content }),
  };
}

function media(
  schema: MediaTypeObject['schema'],
  examples: MediaTypeObject['examples'] = {},
): MediaTypeObject {
  return { schema, ...(Object.keys(examples).length === 0 ? {} : { examples }) };
}

function requestBodyObject(
  docs: BodyDocs,
  scanned: RequestBodyObject | undefined,
  schemas: SchemaComponents,
): RequestBodyObject {
  const schema = docs.schema ? schemas.schemaOf(docs.schema, 'input') : scannedSchema(scanned);
  const types = docs.contentTypes ?? [JSON_TYPE];
  return {
    ...(docs.description === undefined ? {} : { description: docs.description }),
    required: docs.required ?? true,
    content: Object.fromEntries(types.map((type) => [type, media(schema, docs.examples)])),
  };
}

function scannedSchema(scanned: RequestBodyObject | undefined): MediaTypeObject['schema'] {
  const schema = scanned?.content[JSON_TYPE]?.schema;
  if (schema === undefined) throw new Error('the controller does not tell the type of its body');
  const { $ref } = schema;
  return typeof $ref === 'string' ? { $ref: requestSchemaName($ref) } : tidy(schema);
}

const PLACES = ['path', 'query', 'header'] as const;

function parametersOf(path: string, scanned: ScannedOperation, docs: OperationDocs): ParameterObject[] {
  const words = { path: docs.path ?? {}, query: docs.query ?? {}, header: docs.headers ?? {} };
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => String(name));
  const found = {
    path: inPath,
    query: (scanned.parameters ?? []).filter((each) => each.in === 'query').map(({ name }) => name),
    // Headers are read in many ways; the words are what is known of them.
    header: Object.keys(words.header),
  };
  return PLACES.flatMap((place) => {
    const surplus = Object.keys(words[place]).filter((name) => !found[place].includes(name));
    if (surplus.length > 0) throw new Error(`it has no ${place} parameter ${surplus.join(', ')}`);
    return found[place].map((name) => {
      const known = scanned.parameters?.find((each) => each.name === name && each.in === place);
      return parameterObject(name, place, known, words[place][name]);
    });
  });
}

function parameterObject(
  name: string,
  place: ParameterObject['in'],
  scanned: ParameterObject | undefined,
  words: ParameterDocs | undefined,
): ParameterObject {
  if (words === undefined) throw new Error(`its ${place} parameter ${name} has no words`);
  const { description, example } = words;
  const schema = words.schema ?? tidy(scanned?.schema ?? { type: 'string' });
  const required = place === 'path' || (scanned?.required ?? false);
  return { name, in: place, required, description, schema, ...(example === undefined ? {} : { example }) };
}
