import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import ts from 'typescript';

const WORKSPACE = join(__dirname, '../..');
const PAGE = readFileSync(join(WORKSPACE, 'docs/architecture.md'), 'utf8');
const CONTRIBUTING = readFileSync(join(WORKSPACE, 'CONTRIBUTING.md'), 'utf8');

/** A section of a page that says `Paths start at …`. */
interface Journey {
  readonly title: string;
  /**
   * The files that the section names, without duplicates: paths from the workspace root, or the written name
   * if no such file exists.
   */
  readonly files: readonly string[];
}

/**
 * Returns the sections of a page that say where their paths start: journeys, or the recipes of
 * CONTRIBUTING.md.
 */
function journeysOf(page: string): Journey[] {
  return page.split(/^(?=#{2,3} )/m).flatMap((section) => {
    const [, base] = /Paths start at `([^`]+)`/.exec(section) ?? [];
    if (base === undefined) return [];
    const [title = ''] = section.split('\n', 1);
    const files = namesIn(section).map((name) => [`${base}${name}`, name].find(exists) ?? name);
    return [{ title: title.replace(/^#+ /, ''), files: [...new Set(files)] }];
  });
}

/** Returns the names of TypeScript files in backquotes. */
function namesIn(markdown: string): string[] {
  return [...markdown.matchAll(/`([\w./-]+\.ts)`/g)].map(([, name]) => name ?? '');
}

function exists(path: string): boolean {
  return existsSync(join(WORKSPACE, path));
}

/** Returns the files that import no other file of the list and are imported by none. */
function unconnected(files: readonly string[]): string[] {
  const imports = new Map(files.map((file) => [file, importsOf(file)]));
  return files.filter(
    (file) => !files.some((other) => imports.get(file)?.has(other) || imports.get(other)?.has(file)),
  );
}

/**
 * Returns the workspace's files that a file imports. For a name from a library, that is the file that
 * declares the name, not the library's index.
 */
function importsOf(file: string): ReadonlySet<string> {
  return new Set(
    linksOf(file).flatMap(({ source, names }) => {
      const target = resolveImport(source, file);
      if (target === null) return [];
      return source.startsWith('@platform/') ? names.map((name) => originOf(target, name)) : [target];
    }),
  );
}

/** Follows the re-exports of `name` from a library's index to the file that declares it. */
function originOf(file: string, name: string): string {
  const link = linksOf(file).find(({ exports }) => exports.includes(name));
  const target = link === undefined ? null : resolveImport(link.source, file);
  return target === null ? file : originOf(target, name);
}

/** An import or a re-export, with the names that it imports and those that it exports. */
interface Link {
  readonly source: string;
  readonly names: readonly string[];
  readonly exports: readonly string[];
}

const links = new Map<string, readonly Link[]>();

function linksOf(file: string): readonly Link[] {
  const known = links.get(file) ?? readLinks(readFileSync(join(WORKSPACE, file), 'utf8'));
  links.set(file, known);
  return known;
}

function readLinks(text: string): Link[] {
  return ts.createSourceFile('', text, ts.ScriptTarget.Latest).statements.flatMap((statement): Link[] => {
    const isLink = ts.isImportDeclaration(statement) || ts.isExportDeclaration(statement);
    if (!isLink || statement.moduleSpecifier === undefined) return [];
    const source = (statement.moduleSpecifier as ts.StringLiteral).text;
    const named = ts.isExportDeclaration(statement)
      ? statement.exportClause
      : statement.importClause?.namedBindings;
    if (named === undefined || !(ts.isNamedImports(named) || ts.isNamedExports(named)))
      return [{ source, names: [], exports: [] }];
    const elements: readonly (ts.ImportSpecifier | ts.ExportSpecifier)[] = [...named.elements];
    const names = elements.map(({ propertyName, name }) => (propertyName ?? name).text);
    const exports = ts.isExportDeclaration(statement) ? elements.map(({ name }) => name.text) : [];
    return [{ source, names, exports }];
  });
}

/** Returns the path of an imported file of the workspace, or null for a package. */
function resolveImport(source: string, importer: string): string | null {
  const path = source
    .replace(/^\.\.?\//, `${join(importer, '..')}/$&`)
    .replace(/^@platform\/([^/]+)$/, 'libs/$1/src/index');
  if (path === source) return null;
  const file = join(path.endsWith('.ts') ? path : `${path}.ts`);
  return exists(file) ? file : null;
}

describe('docs/architecture.md', () => {
  const journeys = journeysOf(PAGE);

  it('has the journeys', () => {
    const sizes = Object.fromEntries(journeys.map(({ title, files }) => [title, files.length]));
    expect(sizes).toMatchObject({
      'Every request': expect.any(Number) as number,
      'A password login': expect.any(Number) as number,
      'A new schedule until its instances exist': expect.any(Number) as number,
      'A written setting until a watcher has it': expect.any(Number) as number,
    });
    expect(Math.min(...Object.values(sizes))).toBeGreaterThan(4);
  });

  it.each(journeys)('$title: every file exists', ({ files }) => {
    expect(files.filter((file) => !exists(file))).toEqual([]);
  });

  it.each(journeys)('$title: each file imports another one, or is imported by it', ({ files }) => {
    expect(unconnected(files)).toEqual([]);
  });

  it('names only existing files in its other sections', () => {
    const sources = globSync('{apps,libs,tools,verification}/**/*.ts', {
      cwd: WORKSPACE,
      exclude: ['**/node_modules/**'],
    });
    const known = new Set(sources.map((file) => basename(file)));
    const isKnown = (name: string): boolean => (name.includes('/') ? exists(name) : known.has(name));
    const inJourneys = new Set(journeys.flatMap(({ files }) => files).map((file) => basename(file)));
    const others = namesIn(PAGE).filter((name) => !inJourneys.has(basename(name)));
    expect(others.filter((name) => !isKnown(name))).toEqual([]);
  });

  it.each(journeysOf(CONTRIBUTING))('CONTRIBUTING.md, $title: every file exists', ({ files }) => {
    expect(files.length).toBeGreaterThan(4);
    expect(files.filter((file) => !exists(file))).toEqual([]);
  });

  it('would notice a missing file, and a file without a connection', () => {
    const page = [
      '### A journey',
      'Paths start at `libs/`.',
      '`database/src/batched.ts`, `database/src/errors.ts`, `database/src/gone.ts`',
    ];
    const [journey] = journeysOf(page.join('\n'));
    const missing = journey?.files.filter((file) => !exists(file));
    expect(missing).toEqual(['database/src/gone.ts']);
    const existing = journey?.files.filter(exists) ?? [];
    expect(unconnected([...existing, 'libs/personas/src/index.ts'])).toEqual(['libs/personas/src/index.ts']);
  });

  it('follows an import through the index of a library', () => {
    expect(importsOf('apps/task-service/src/slots/change-slots.service.ts')).toContain(
      'libs/database/src/slots.ts',
    );
  });
});
