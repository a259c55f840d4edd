import type { MigrationInterface, QueryRunner } from 'typeorm';

type MigrationClass = new () => MigrationInterface;

/** Returns the statements that a migration's `up` runs on an empty database. */
async function recordStatements(migration: MigrationInterface): Promise<string[]> {
  const statements: string[] = [];
  const query = (statement: string): Promise<unknown[]> => {
    statements.push(statement);
    return Promise.resolve([]);
  };
  await migration.up({ query, isReleased: false } as unknown as QueryRunner);
  return statements;
}

/** Returns descriptions of the parts of a migration that would keep requests of a running service waiting. */
export async function findMigrationProblems(Migration: MigrationClass): Promise<string[]> {
  const migration = new Migration();
  const statements = (await recordStatements(migration)).map(withoutBodies);
  const isTransactional = migration.transaction !== false;
  const created = new Set(statements.flatMap(createdTables));
  const isNew = (table: string): boolean => created.has(plainName(table));
  return [
    ...statements.flatMap((statement) => problemsOf(statement, { isTransactional, isNew })),
    ...(isTransactional ? findMultipleLocks(statements, isNew) : []),
  ];
}

/**
 * Finds transactions that lock several existing tables. A request that holds a lock of one table may wait for
 * the other: a deadlock, which ends the request after 1 s.
 */
function findMultipleLocks(statements: readonly string[], isNew: Surroundings['isNew']): string[] {
  const locked = new Set(
    statements
      .filter((statement) => !isHarmless(statement))
      .flatMap(lockedTables)
      .filter((table) => !isNew(table)),
  );
  if (locked.size < 2) return [];
  return [`locks several tables that already exist, use one migration for each: ${[...locked].join(', ')}`];
}

function lockedTables(statement: string): string[] {
  const [, listed] = LOCK_TABLES.exec(statement) ?? [];
  if (listed !== undefined) return listed.split(',').map(plainName);
  const [, altered] = ALTER_TABLE.exec(statement) ?? [];
  const [, triggered] = TRIGGER_ON.exec(statement) ?? [];
  const [, dropped] = DROP_TABLE.exec(statement) ?? [];
  return [altered, triggered, dropped].flatMap((name) => (name === undefined ? [] : [plainName(name)]));
}

function plainName(name: string): string {
  return name.trim().toLowerCase().replaceAll('"', '');
}

interface Surroundings {
  isTransactional: boolean;
  /** Returns true if the migration itself creates the table, so that no request uses it yet. */
  isNew: (table: string) => boolean;
}

const NAME = String.raw`("?\w+"?(?:\."?\w+"?)?)`;
const CREATE_TABLE = new RegExp(
  String.raw`^CREATE (?:TEMPORARY |UNLOGGED )?TABLE (?:IF NOT EXISTS )?${NAME}`,
  'i',
);
const CREATE_INDEX = new RegExp(
  String.raw`^CREATE (?:UNIQUE )?INDEX (CONCURRENTLY )?.*?\bON (?:ONLY )?${NAME}`,
  'i',
);
const ALTER_TABLE = new RegExp(String.raw`^ALTER TABLE (?:IF EXISTS )?(?:ONLY )?${NAME}`, 'i');
const LOCK_TABLES = /^LOCK (?:TABLE )?(?:ONLY )?(.+?)(?: IN .*)?$/i;
const TRIGGER_ON = new RegExp(
  String.raw`^(?:CREATE (?:OR REPLACE )?(?:CONSTRAINT )?|DROP )TRIGGER .*?\bON ${NAME}`,
  'i',
);
const DROP_TABLE = new RegExp(String.raw`^DROP TABLE (?:IF EXISTS )?${NAME}`, 'i');
const CHANGE_ROWS = new RegExp(String.raw`^(?:UPDATE|DELETE FROM) (?:ONLY )?${NAME}`, 'i');
/** Statements that lock existing objects against reads or writes. */
const TAKES_STRONG_LOCK =
  /^(ALTER TABLE|DROP (TABLE|VIEW|TRIGGER|INDEX(?! CONCURRENTLY))|TRUNCATE|LOCK|CLUSTER|REINDEX(?!.* CONCURRENTLY)|VACUUM FULL|CREATE (OR REPLACE )?(CONSTRAINT )?TRIGGER)\b/i;

function problemsOf(statement: string, { isTransactional, isNew }: Surroundings): string[] {
  const problems: string[] = [];
  const report = (problem: string): void => void problems.push(`${problem}: ${statement.slice(0, 120)}`);
  const [, concurrently, indexed] = CREATE_INDEX.exec(statement) ?? [];
  if (indexed !== undefined && concurrently === undefined && !isNew(indexed))
    report('an index on an existing table: use createIndexConcurrently');
  if (isTransactional && /\bCONCURRENTLY\b/i.test(statement))
    report('not possible in a transaction: the class needs `readonly transaction = false`');
  if (/^SET .*\block_timeout\b|set_config\(\s*'lock_timeout'/i.test(statement) && isTransactional)
    report('sets its own lock_timeout: migrations wait for a lock for at most 1 s');
  const [, altered] = ALTER_TABLE.exec(statement) ?? [];
  if (
    !isTransactional &&
    TAKES_STRONG_LOCK.test(statement) &&
    (altered === undefined || !isHarmless(statement))
  )
    report(
      'a strong lock outside of a transaction, which cannot be rolled back as a whole: use a separate migration',
    );
  if (altered !== undefined && !isNew(altered)) {
    const long = LONG_ALTERATIONS.find(({ matches }) => matches.test(statement));
    if (long !== undefined) report(long.problem);
  }
  const [, changed] = CHANGE_ROWS.exec(statement) ?? [];
  if (changed !== undefined && !isNew(changed))
    report('changes rows of an existing table in one statement: do it in batches');
  return problems;
}

/** Returns true for changes of storage parameters, which block neither reads nor writes. */
function isHarmless(statement: string): boolean {
  return /^ALTER TABLE \S+ (RE)?SET \(/i.test(statement);
}

const LONG_ALTERATIONS = [
  { matches: /\bALTER (COLUMN )?\S+ (SET DATA )?TYPE\b/i, problem: 'rewrites the table under its lock' },
  {
    matches: /\bADD (COLUMN )?\S+ .*\bDEFAULT (clock_timestamp|gen_random_uuid|random|nextval)\b/i,
    problem: 'rewrites the table under its lock, because the default differs from row to row',
  },
  { matches: /\bSET NOT NULL\b/i, problem: 'reads the table under its lock: validate a CHECK first' },
  {
    matches: /\bADD (CONSTRAINT \S+ )?(CHECK|FOREIGN KEY)\b(?!.*\bNOT VALID\b)/i,
    problem: 'reads the table under its lock: add it NOT VALID, and validate it in a further migration',
  },
  {
    matches: /\bADD (CONSTRAINT \S+ )?(UNIQUE|PRIMARY KEY)\b(?!.*\bUSING INDEX\b)/i,
    problem: 'builds an index under its lock: build it concurrently, then add the constraint USING INDEX',
  },
] as const;

function createdTables(statement: string): string[] {
  const [, name] = CREATE_TABLE.exec(statement) ?? [];
  return name === undefined ? [] : [plainName(name)];
}

/**
 * Returns the statement in one line, without comments and function bodies. The bodies run later, under their
 * own limits.
 */
function withoutBodies(statement: string): string {
  return statement
    .replaceAll(/--.*$/gm, '')
    .replaceAll(/\$(\w*)\$[^]*?\$\1\$/g, "''")
    .replaceAll(/\s+/g, ' ')
    .trim();
}
