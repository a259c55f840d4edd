import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ALL_CONTRACTS } from './all-contracts';
import { TASK_SERVICE_OPERATIONS, asyncApiDocument } from './asyncapi-document';

const FILE = join(__dirname, '../../../docs/asyncapi.yaml');

describe('docs/asyncapi.yaml', () => {
  const document = asyncApiDocument(ALL_CONTRACTS, TASK_SERVICE_OPERATIONS);

  it('says what the contracts say', () => {
    if (process.env['UPDATE_DOCS'] === '1') writeFileSync(FILE, document);
    expect(readFileSync(FILE, 'utf8')).toBe(document);
  });

  it('holds every message, and every one that is no answer in an operation', () => {
    const { sends, receives } = TASK_SERVICE_OPERATIONS;
    for (const { name } of ALL_CONTRACTS) {
      expect(document).toContain(`\n    ${name}:\n      name: "${name}"`);
      const isAnswer = /(Succeeded|Failed)$/.test(name);
      expect([name, [...sends, ...receives].includes(name)]).toEqual([name, !isAnswer]);
    }
  });

  it('refers to nothing that it does not define', () => {
    const references = [...document.matchAll(/"\$ref": "#\/([^"]+)"/g)].map((match) => match[1] ?? '');
    expect(references.length).toBeGreaterThan(30);
    const defined = pathsOf(document);
    expect(references.filter((path) => !defined.has(path))).toEqual([]);
  });
});

/** Paths of all members, by indentation. */
function pathsOf(yaml: string): Set<string> {
  const paths = new Set<string>();
  const stack: string[] = [];
  for (const line of yaml.split('\n')) {
    const [, indent = '', key] = /^( *)"?([\w$-]+)"?:/.exec(line) ?? [];
    if (key === undefined) continue;
    stack.length = indent.length / 2;
    stack.push(key);
    paths.add(stack.join('/'));
  }
  return paths;
}
