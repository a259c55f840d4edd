import type { OpenApiDocument } from '@platform/open-api';

/** An operation of a document and where it is. */
export interface FoundOperation {
  readonly operation: OpenApiDocument['paths'][string][string];
  /** JSON pointer within the document. */
  readonly pointer: string;
}

/** Finds the operation that a request is for, as the services route: any letter case, one trailing slash ignored, HEAD as GET.
 *  `path` when there is something at the address, but not for this method; null when there is nothing. */
export function findOperation(
  { paths }: Pick<OpenApiDocument, 'paths'>,
  method: string,
  target: string,
): FoundOperation | 'path' | null {
  const path = decoded((target.split('?', 1)[0] ?? '/').replace(/(?<=.)\/$/, ''));
  const template = Object.keys(paths)
    .sort((a, b) => parameters(a) - parameters(b))
    .find((each) => pattern(each).test(path));
  if (template === undefined) return null;
  const name = method === 'HEAD' ? 'get' : method.toLowerCase();
  const operation = paths[template]?.[name];
  if (operation === undefined) return 'path';
  return { operation, pointer: `/paths/${escape(template)}/${name}` };
}

/** As the router reads it; as it is where it cannot be read. */
function decoded(path: string): string {
  try {
    return decodeURI(path);
  } catch (error) {
    if (error instanceof URIError) return path;
    throw error;
  }
}

/** A key as part of a JSON pointer. */
export function escape(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}

function parameters(template: string): number {
  return template.split('{').length;
}

function pattern(template: string): RegExp {
  const source = template.replace(/[.*+?^$()|[\]\\]/g, '\\$&').replace(/\{\w+\}/g, '[^/]+');
  return new RegExp(`^${source}$`, 'i');
}
