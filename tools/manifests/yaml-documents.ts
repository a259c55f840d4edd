import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import type { Value } from './kubernetes-object.ts';

/**
 * The documents of a YAML text.
 * @param source where it comes from, for the message
 * @throws {Error} on anything that is no strict YAML: duplicated keys, unknown tags, aliases, warnings of the parser
 */
export function parseYaml(text: string, source: string): Value[] {
  const documents = parseAllDocuments(text, { uniqueKeys: true, version: '1.2' });
  if (!Array.isArray(documents)) return [];
  return documents.map((document) => {
    const [problem] = [...document.errors, ...document.warnings];
    if (problem !== undefined) throw new Error(`${source}: ${problem.message}`);
    return document.toJS({ maxAliasCount: 0 }) as Value;
  });
}

/** The same for a file. */
export function readYaml(file: string): Value[] {
  return parseYaml(readFileSync(file, 'utf8'), file);
}
