import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import ts from 'typescript';

/** A statement that a source file holds as one literal. */
export interface SourceStatement {
  /** `apps/…/file.ts:line`. */
  readonly place: string;
  /** Its text between the parts that the program fills in. */
  readonly pieces: readonly string[];
}

/** Case-sensitive: a sentence may begin with "Select", SQL in this workspace never does. */
const BEGINS_A_STATEMENT = /^\s*(?:WITH|SELECT|INSERT INTO|UPDATE|DELETE FROM)\s/;
/** What pg_stat_statements replaces by a parameter of its own, and parameters, which it may number anew.
 *  TypeORM's have names. */
const CONSTANT = /\$\d+|(?<!:):[A-Za-z]\w*|'(?:[^']|'')*'|\b(?:\d+(?:\.\d+)?|true|false|NULL|null)\b/g;
const ANY_CONSTANT = String.raw`(?:\$\d+|'(?:[^']|'')*'|\d+(?:\.\d+)?|true|false|NULL|null)`;

/**
 * The SQL statements in the program files below a folder, specs and migrations left out.
 * @param workspace places are given relative to it
 */
export function statementsInFolder(folder: string, workspace: string): SourceStatement[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.spec.ts') && !name.startsWith('migrations/'))
    .flatMap((name) => {
      const file = join(folder, name);
      return statementsInText(relative(workspace, file), readFileSync(file, 'utf8'));
    });
}

/** The SQL statements in the text of a program. @param file names it in the places */
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

/** The statements that PostgreSQL did not run. @param queries texts of pg_stat_statements */
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

/** A piece that ends within a quoted constant, and the next one, without the halves of that constant. */
function withoutHalfConstants(pieces: readonly string[]): string[] {
  let isQuoted = false;
  return pieces.map((piece) => {
    const whole = isQuoted ? piece.slice(piece.indexOf("'") + 1) : piece;
    isQuoted = (whole.split("'").length - 1) % 2 === 1;
    return isQuoted ? whole.slice(0, whole.lastIndexOf("'")) : whole;
  });
}

/**
 * Whatever the program fills in matches; white space, constants and the numbers of parameters do not count.
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
      // The field is a constant to PostgreSQL.
      .replace(/\bextract\s*\(\s*(?:\w+|\$\d+)\s+FROM\b/gi, 'extract($1 FROM')
      .replace(/\s+/g, ' ')
      .replace(/ ?([(),]) ?/g, '$1')
      .trim()
  );
}

function escape(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
}
