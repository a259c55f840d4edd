import pg from 'pg';
import { queryAt } from './postgresql.ts';

/**
 * One service's database and its two roles: the owner runs the migrations, the application only uses the
 * tables.
 */
export interface ServiceDatabase {
  readonly service: string;
  readonly ownerPassword: string;
  readonly appPassword: string;
}

export interface DatabaseUrls {
  readonly owner: string;
  readonly app: string;
}

/** Creates the missing roles and databases of the services, and sets the roles' passwords; safe to repeat. */
export async function createDatabases(
  adminUrl: string,
  databases: readonly ServiceDatabase[],
): Promise<void> {
  const present = await queryAt<{ name: string }>(
    adminUrl,
    'SELECT rolname AS name FROM pg_roles UNION ALL SELECT datname FROM pg_database',
  );
  const names = new Set(present.map(({ name }) => name));
  await queryAt(adminUrl, ...databases.flatMap((database) => creation(database, names)));
}

/** Closes all connections to the databases, and drops these with their roles. */
export async function dropDatabases(adminUrl: string, databases: readonly ServiceDatabase[]): Promise<void> {
  const statements = databases.flatMap(({ service }) => [
    `DROP DATABASE IF EXISTS ${pg.escapeIdentifier(service)} WITH (FORCE)`,
    `DROP ROLE IF EXISTS ${pg.escapeIdentifier(`${service}_owner`)}`,
    `DROP ROLE IF EXISTS ${pg.escapeIdentifier(`${service}_app`)}`,
  ]);
  await queryAt(adminUrl, ...statements);
}

/**
 * Returns the statements that create a service's roles and database. CREATE DATABASE and GRANT take no
 * parameters.
 * @param present names of existing roles and databases
 */
function creation(
  { service, ownerPassword, appPassword }: ServiceDatabase,
  present: ReadonlySet<string>,
): string[] {
  const role = (name: string, password: string): string =>
    `${present.has(name) ? 'ALTER' : 'CREATE'} ROLE ${pg.escapeIdentifier(name)} LOGIN PASSWORD ${pg.escapeLiteral(password)}`;
  const [owner, app] = [`${service}_owner`, `${service}_app`] as const;
  const name = pg.escapeIdentifier(service);
  return [
    role(owner, ownerPassword),
    role(app, appPassword),
    ...(present.has(service) ? [] : [`CREATE DATABASE ${name} OWNER ${pg.escapeIdentifier(owner)}`]),
    `REVOKE ALL ON DATABASE ${name} FROM PUBLIC`,
    `GRANT CONNECT ON DATABASE ${name} TO ${pg.escapeIdentifier(app)}`,
  ];
}

/** Returns the URLs of a service's database on the server of `adminUrl`. */
export function databaseUrls(adminUrl: string, database: ServiceDatabase): DatabaseUrls {
  const urlFor = (role: string, password: string): string => {
    const url = new URL(adminUrl);
    url.username = role;
    url.password = password;
    url.pathname = `/${database.service}`;
    return url.href;
  };
  return {
    owner: urlFor(`${database.service}_owner`, database.ownerPassword),
    app: urlFor(`${database.service}_app`, database.appPassword),
  };
}
