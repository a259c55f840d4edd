import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { OpenApiDocument } from '@platform/open-api';

/** Returns the path of a file in the workspace, independent of the current folder. */
export function workspaceFile(...segments: string[]): string {
  let folder = __dirname;
  while (!existsSync(join(folder, 'nx.json'))) folder = dirname(folder);
  return join(folder, ...segments);
}

export function documentFile(service: string): string {
  return workspaceFile('docs/openapi', `${service}.json`);
}

export function apiDocument(service: string): OpenApiDocument {
  return JSON.parse(readFileSync(documentFile(service), 'utf8')) as OpenApiDocument;
}

type Operation = OpenApiDocument['paths'][string][string];

const PADDING = 'x'.repeat(1024 * 1024);
const FORM = 'application/x-www-form-urlencoded';

/**
 * Calls every operation of a service without a token, with a body of an unsupported type, and with a body
 * that is too large.
 * @returns the operations whose refusal differs from the API document
 */
export async function wrongRefusals(service: string, origin: string): Promise<string[]> {
  const wrong: string[] = [];
  for (const [template, methods] of Object.entries(apiDocument(service).paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const url = `${origin}${pathOf(template, operation)}`;
      for (const { status, init } of refusalsOf(operation, method)) {
        const response = await fetch(url, { method: method.toUpperCase(), redirect: 'manual', ...init });
        await response.arrayBuffer();
        if (response.status !== status)
          wrong.push(`${operation.operationId}: ${String(response.status)} instead of ${String(status)}`);
      }
    }
  }
  return wrong;
}

function refusalsOf(
  { security, responses, requestBody }: Operation,
  method: string,
): { status: number; init: RequestInit }[] {
  const body = (type: string, text: string): RequestInit => ({
    headers: { 'content-type': type },
    body: text,
  });
  const takesForms = FORM in (requestBody?.content ?? {});
  const tooLarge = takesForms
    ? body(FORM, `padding=${PADDING}`)
    : body('application/json', JSON.stringify({ padding: PADDING }));
  // Services check the body before the token. Token endpoints respond to every unusable body with 400.
  const refused = (status: 413 | 415): number =>
    status in responses ? status : 400 in responses ? 400 : 401;
  return [
    ...(security?.some((credentials) => 'accessToken' in credentials) ? [{ status: 401, init: {} }] : []),
    ...(method === 'get'
      ? []
      : [
          { status: refused(415), init: body('text/plain', 'text') },
          { status: refused(413), init: tooLarge },
        ]),
  ];
}

function pathOf(template: string, { parameters = [] }: Operation): string {
  return template.replace(/\{(\w+)\}/g, (_all, name: string) => {
    const parameter = parameters.find((each) => each.name === name && each.in === 'path');
    return encodeURIComponent(String(parameter?.example));
  });
}
