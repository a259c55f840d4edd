import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import ts from 'typescript';

/** An SQL statement that is one literal in a source file. */
export interface SourceStatement {
  /** `apps/…/file.ts:line`. */
  readonly place: string;
  /** The literal text between the interpolated parts. */
  readonly pieces: readonly string[];
}

/** Case-sensitive, because a sentence may begin with "Select", but SQL in this workspace never does. */
const BEGINS_A_STATEMENT = /^\s*(?:WITH|SELECT|INSERT INTO|UPDATE|DELETE FROM)\s/;
/**
 * Constants, which pg_stat_statements replaces with parameters, and parameters, which it may renumber.
 * TypeORM's parameters have names.
 */
const CONSTANT = /\$\d+|(?<!:):[A-Za-z]\w*|'(?:[^']|'')*'|\b(?:\d+(?:\.\d+)?|true|false|NULL|null)\b/g;
const ANY_CONSTANT = String.raw`(?:\$\d+|'(?:[^']|'')*'|\d+(?:\.\d+)?|true|false|NULL|null)`;

/**
 * Returns the SQL statements in the source files below a folder, except specs and migrations.
 * @param workspace folder that places are relative to
 */
export function statementsInFolder(folder: string, workspace: string): SourceStatement[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.spec.ts') && !name.startsWith('migrations/'))
    .flatMap((name) => {
      const file = join(folder, name);
      return statementsInText(relative(workspace, file), readFileSync(file, 'utf8'));
    });
}

/**
 * Returns the SQL statements in the text of a program.
 * @param file name used in the places
 */
export function statementsInText(file: string, text: string): SourceStatement[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const found: SourceStatement[] = [];
  const visit = (node: ts.Node): void => {
    const pieces = piecesOf(node);
    if (pieces !== null && BEGINS_A_STATEMENT.test(pieces[0] ?? '')) {
      const { line } = source.getLineAndCharacterOfPosition(node.getStart());
      found.push({ place: `${file}:${String(line + 1)}`, pieces });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

function piecesOf(node: ts.Node): string[] | null {
  if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) return [node.text];
  if (!ts.isTemplateExpression(node)) return null;
  return [node.head.text, ...node.templateSpans.map((span) => span.literal.text)];
}

/**
 * Returns the statements that PostgreSQL did not run.
 * @param queries texts of pg_stat_statements
 */
export function statementsNotRun(
  statements: readonly SourceStatement[],
  queries: readonly string[],
): SourceStatement[] {
  const run = queries.map(normalise);
  return statements.filter((statement) => {
    const pattern = patternOf(statement);
    return !run.some((query) => pattern.test(query));
  });
}

/**
 * Removes quoted constants that contain an interpolated part: their first half from one piece and their
 * second half from the next.
 */
function withoutHalfConstants(pieces: readonly string[]): string[] {
  let isQuoted = false;
  return pieces.map((piece) => {
    const whole = isQuoted ? piece.slice(piece.indexOf("'") + 1) : piece;
    isQuoted = (whole.split("'").length - 1) % 2 === 1;
    return isQuoted ? whole.slice(0, whole.lastIndexOf("'")) : whole;
  });
}

/**
 * Returns a pattern in which interpolated parts match any text. Ignores white space, constants and parameter
 * numbers.
 */
function patternOf({ pieces }: SourceStatement): RegExp {
  const parts = withoutHalfConstants(pieces).map((piece) =>
    normalise(piece).split(CONSTANT).map(escape).join(ANY_CONSTANT),
  );
  return new RegExp(`(?:^|\\(|UNION ALL )${parts.join('[^]*?')}`);
}

function normalise(sql: string): string {
  return (
    sql
      .replace(/--[^\n]*/g, ' ')
      // PostgreSQL treats the field of extract() as a constant.
      .replace(/\bextract\s*\(\s*(?:\w+|\$\d+)\s+FROM\b/gi, 'extract($1 FROM')
      .replace(/\s+/g, ' ')
      .replace(/ ?([(),]) ?/g, '$1')
      .trim()
  );
}

function escape(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
}
