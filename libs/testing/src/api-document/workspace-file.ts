import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { OpenApiDocument } from '@platform/open-api';

/** Path of a file of the workspace, whichever folder the tests were started in. */
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
