import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { queryAt } from '#platform/postgresql.ts';
import { testVariable } from '#platform/private-servers.ts';

interface TestLogin {
  role: string;
  password: string;
}

/** A login role of a suite, e.g. to prove what grants allow. */
export interface TestRole {
  role: string;
  /** The suite's database as this role. */
  url: string;
}

/** A database of its own for one suite. */
export interface TestDatabase {
  /** The database as the role that a service has in production: it may do what the migrations grant, and nothing else. */
  url: string;
  /** The same database as the role that owns it, for migrations, administration and preparing data. */
  ownerUrl: string;
  /** Rows of one statement, run as the owner. */
  query<R extends object = Record<string, unknown>>(sql: string, params?: readonly unknown[]): Promise<R[]>;
  /** A login role without any rights; it goes with the database. */
  createRole(): Promise<TestRole>;
  /** Disconnects everybody and drops the database. */
  drop(): Promise<void>;
}

/**
 * Fills a database as its owner and grants `appRole` what the service needs. The same function gives the same template within one
 * test file.
 */
export type Migrate = (ownerUrl: string, appRole: string) => Promise<unknown>;

interface Template {
  name: string;
  /** The service's role. Grants are copied with the database, so all clones share it. */
  app: TestLogin;
  /** Databases cloned from it and not dropped yet. */
  clones: number;
}

const templatesByServer = new Map<string, Map<Migrate, Promise<Template>>>();

/**
 * A freshly migrated database with a random name, on the server of TEST_DATABASE_URL unless `server` names another. The first
 * call with a `migrate` fills a template; this and every further call clone it. Call `drop()` when done.
 */
export async function createTestDatabase({
  migrate,
  server = testVariable('TEST_DATABASE_URL'),
}: {
  migrate: Migrate;
  server?: string | undefined;
}): Promise<TestDatabase> {
  const templates = templatesByServer.get(server) ?? new Map<Migrate, Promise<Template>>();
  templatesByServer.set(server, templates);
  let pending = templates.get(migrate);
  if (pending === undefined) templates.set(migrate, (pending = createTemplate(server, migrate)));
  const template = await pending;
  template.clones += 1;
  const name = randomName('test');
  await queryAt(server, `CREATE DATABASE ${name} TEMPLATE ${template.name}`);
  return new ClonedDatabase(server, name, template.app, async () => {
    template.clones -= 1;
    if (template.clones > 0) return;
    templates.delete(migrate);
    await queryAt(
      server,
      `DROP DATABASE IF EXISTS ${template.name} WITH (FORCE)`,
      `DROP ROLE IF EXISTS ${template.app.role}`,
    );
  });
}

class ClonedDatabase implements TestDatabase {
  readonly url: string;
  readonly ownerUrl: string;
  private readonly roles: string[] = [];
  private connection: Promise<Client> | null = null;

  constructor(
    private readonly server: string,
    private readonly name: string,
    app: TestLogin,
    private readonly onDrop: () => Promise<void>,
  ) {
    this.ownerUrl = databaseUrl(server, name);
    this.url = urlAs(this.ownerUrl, app);
  }

  async query<R extends object = Record<string, unknown>>(
    sql: string,
    params: readonly unknown[] = [],
  ): Promise<R[]> {
    this.connection ??= this.connect();
    const result = await (await this.connection).query<R>(sql, [...params]);
    return result.rows;
  }

  private async connect(): Promise<Client> {
    const client = new Client({ connectionString: this.ownerUrl, connectionTimeoutMillis: 5_000 });
    // Tests end servers and connections on purpose; what matters fails in the statement.
    client.on('error', () => undefined);
    await client.connect();
    // The next statement connects anew, e.g. after a crash of the server.
    client.once('end', () => (this.connection = null));
    return client;
  }

  async createRole(): Promise<TestRole> {
    const login = await createLogin(this.server, randomName('test_role'));
    this.roles.push(login.role);
    return { role: login.role, url: urlAs(this.ownerUrl, login) };
  }

  async drop(): Promise<void> {
    await (await this.connection)?.end();
    this.connection = null;
    const roles = this.roles.map((role) => `DROP ROLE IF EXISTS ${role}`);
    await queryAt(this.server, `DROP DATABASE IF EXISTS ${this.name} WITH (FORCE)`, ...roles);
    await this.onDrop();
  }
}

async function createTemplate(server: string, migrate: Migrate): Promise<Template> {
  const name = randomName('test_template');
  await queryAt(server, `CREATE DATABASE ${name}`);
  const app = await createLogin(server, randomName('test_app'));
  await migrate(databaseUrl(server, name), app.role);
  return { name, app, clones: 0 };
}

async function createLogin(server: string, role: string): Promise<TestLogin> {
  const password = randomBytes(12).toString('hex');
  await queryAt(server, `CREATE ROLE ${role} LOGIN PASSWORD '${password}'`);
  return { role, password };
}

function urlAs(ownerUrl: string, { role, password }: TestLogin): string {
  const url = new URL(ownerUrl);
  url.username = role;
  url.password = password;
  return url.toString();
}

function databaseUrl(server: string, name: string): string {
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.toString();
}

/** Safe to use unquoted in SQL. */
function randomName(prefix: string): string {
  return `${prefix}_${randomBytes(8).toString('hex')}`;
}
