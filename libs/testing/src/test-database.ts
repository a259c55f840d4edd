import { createHash, randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { queryAt } from '#platform/postgresql.ts';
import { testVariable } from '#platform/private-servers.ts';
import { runName } from './test-run';

interface TestLogin {
  role: string;
  password: string;
}

/** A login role of a suite, e.g. to test grants. */
export interface TestRole {
  role: string;
  /** URL of the suite's database as this role. */
  url: string;
}

/** A separate database for one suite. */
export interface TestDatabase {
  /**
   * URL of the database as the service's production role, which has only the rights that the migrations
   * grant.
   */
  url: string;
  /**
   * URL of the same database as its owner, as in production: for migrations, administration and test data.
   */
  ownerUrl: string;
  /** URL of the same database as the superuser: for faults, and to see other sessions. */
  superuserUrl: string;
  /** Returns the rows of a statement run as the owner. */
  query<R extends object = Record<string, unknown>>(sql: string, params?: readonly unknown[]): Promise<R[]>;
  /** Returns the rows of a statement run as the superuser. */
  querySuperuser<R extends object = Record<string, unknown>>(
    sql: string,
    params?: readonly unknown[],
  ): Promise<R[]>;
  /** Creates a login role without any rights. `drop` removes it. */
  createRole(): Promise<TestRole>;
  /** Ends all sessions and drops the database. */
  drop(): Promise<void>;
}

/** Migrates a database as its owner and grants `appRole` the rights that the service needs. */
export interface Migrate {
  (ownerUrl: string, appRole: string): Promise<unknown>;
  /** Name under which all test files of a run share the migrated template; see `sharedMigration`. */
  readonly sharedName?: string;
}

interface Template {
  name: string;
  /** The service's role. All clones share it, because grants are copied with the database. */
  app: TestLogin;
}

const templatesByServer = new Map<string, Map<Migrate, Promise<Template>>>();

/**
 * Lets all test files of a run clone one database that `migrate` fills once.
 * @param name identifies `migrate` and everything it depends on
 */
export function sharedMigration(name: string, migrate: Migrate): Migrate {
  return Object.assign((ownerUrl: string, appRole: string) => migrate(ownerUrl, appRole), {
    sharedName: name,
  });
}

/**
 * Creates a migrated database with a random name, on the server of TEST_DATABASE_URL or of `server`; both are
 * superuser URLs. The first call with a `migrate` fills a template, and every call clones it. Call `drop()`
 * when done. The end of the run drops the templates.
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
  if (pending === undefined) templates.set(migrate, (pending = findOrMakeTemplate(server, migrate)));
  const template = await pending;
  const name = randomName('test');
  await queryAt(
    server,
    `CREATE DATABASE ${name} TEMPLATE ${template.name} OWNER ${OWNER_ROLE}`,
    `REVOKE ALL ON DATABASE ${name} FROM PUBLIC`,
    `GRANT CONNECT ON DATABASE ${name} TO ${template.app.role}`,
  );
  return new ClonedDatabase(server, name, template.app);
}

class ClonedDatabase implements TestDatabase {
  readonly url: string;
  readonly ownerUrl: string;
  readonly superuserUrl: string;
  private readonly roles: string[] = [];
  private readonly owner: ReconnectingClient;
  private readonly superuser: ReconnectingClient;

  constructor(
    private readonly server: string,
    private readonly name: string,
    app: TestLogin,
  ) {
    this.superuserUrl = databaseUrl(server, name);
    this.ownerUrl = urlAs(this.superuserUrl, ownerOf(server));
    this.url = urlAs(this.superuserUrl, app);
    this.owner = new ReconnectingClient(this.ownerUrl);
    this.superuser = new ReconnectingClient(this.superuserUrl);
  }

  query<R extends object = Record<string, unknown>>(
    sql: string,
    params: readonly unknown[] = [],
  ): Promise<R[]> {
    return this.owner.query<R>(sql, params);
  }

  querySuperuser<R extends object = Record<string, unknown>>(
    sql: string,
    params: readonly unknown[] = [],
  ): Promise<R[]> {
    return this.superuser.query<R>(sql, params);
  }

  async createRole(): Promise<TestRole> {
    const login = { role: randomName('test_role'), password: randomBytes(12).toString('hex') };
    await queryAt(this.server, creation(login), `GRANT CONNECT ON DATABASE ${this.name} TO ${login.role}`);
    this.roles.push(login.role);
    return { role: login.role, url: urlAs(this.superuserUrl, login) };
  }

  async drop(): Promise<void> {
    await this.owner.end();
    await this.superuser.end();
    const roles = this.roles.map((role) => `DROP ROLE IF EXISTS ${role}`);
    await queryAt(this.server, `DROP DATABASE IF EXISTS ${this.name} WITH (FORCE)`, ...roles);
  }
}

/** A connection that opens on first use and reopens after it was lost. */
class ReconnectingClient {
  private connection: Promise<Client> | null = null;

  constructor(private readonly url: string) {}

  async query<R extends object>(sql: string, params: readonly unknown[]): Promise<R[]> {
    this.connection ??= this.connect();
    const result = await (await this.connection).query<R>(sql, [...params]);
    return result.rows;
  }

  async end(): Promise<void> {
    await (await this.connection)?.end();
    this.connection = null;
  }

  private async connect(): Promise<Client> {
    const client = new Client({ connectionString: this.url, connectionTimeoutMillis: 5_000 });
    // Tests end servers and connections on purpose. A failure that matters surfaces in the statement.
    client.on('error', () => undefined);
    await client.connect();
    // Makes the next statement reconnect, e.g. after a crash of the server.
    client.once('end', () => (this.connection = null));
    return client;
  }
}

/**
 * The owner has the same name on every server, so that its statements are never counted as those of a
 * service.
 */
const OWNER_ROLE = 'test_owner';

function ownerOf(server: string): TestLogin {
  return { role: OWNER_ROLE, password: derivedPassword(server, OWNER_ROLE) };
}

/** Derives the password of a shared role, so that test files need not exchange it. */
function derivedPassword(server: string, role: string): string {
  return createHash('sha256')
    .update(`${role}:${new URL(server).password}`)
    .digest('hex');
}

/** Finds or creates a template. If several processes need it at the same time, one of them creates it. */
async function findOrMakeTemplate(server: string, migrate: Migrate): Promise<Template> {
  const prefix = `test_template_${runName()}`;
  const name = `${prefix}_${migrate.sharedName ?? randomBytes(8).toString('hex')}`;
  const app = { role: `${name}_app`, password: derivedPassword(server, `${name}_app`) };
  const client = new Client({ connectionString: server, connectionTimeoutMillis: 5_000 });
  await client.connect();
  try {
    await createOwner(client, server);
    await client.query('SELECT pg_advisory_lock(hashtextextended($1, 0))', [name]);
    const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [name]);
    if (rowCount === 0) await makeTemplate(client, server, { name, app }, migrate);
  } finally {
    // Closing the connection releases the lock.
    await client.end();
  }
  return { name, app };
}

async function createOwner(client: Client, server: string): Promise<void> {
  await client.query('BEGIN');
  await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [OWNER_ROLE]);
  const { rowCount } = await client.query('SELECT FROM pg_roles WHERE rolname = $1', [OWNER_ROLE]);
  if (rowCount === 0) await client.query(creation(ownerOf(server)));
  await client.query('COMMIT');
}

/** Creates a template. It gets its final name only when it is complete. */
async function makeTemplate(
  client: Client,
  server: string,
  { name, app }: Template,
  migrate: Migrate,
): Promise<void> {
  const partial = `${name}_part`;
  await client.query(`DROP DATABASE IF EXISTS ${partial} WITH (FORCE)`);
  await client.query(`DROP ROLE IF EXISTS ${app.role}`);
  await client.query(`CREATE DATABASE ${partial} OWNER ${OWNER_ROLE}`);
  await client.query(`REVOKE ALL ON DATABASE ${partial} FROM PUBLIC`);
  await client.query(creation(app));
  await migrate(urlAs(databaseUrl(server, partial), ownerOf(server)), app.role);
  await client.query(`ALTER DATABASE ${partial} RENAME TO ${name}`);
}

function creation({ role, password }: TestLogin): string {
  return `CREATE ROLE ${role} LOGIN PASSWORD '${password}'`;
}

function urlAs(url: string, { role, password }: TestLogin): string {
  const address = new URL(url);
  address.username = role;
  address.password = password;
  return address.toString();
}

function databaseUrl(server: string, name: string): string {
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.toString();
}

/** Returns a name that is safe to use unquoted in SQL. */
function randomName(prefix: string): string {
  return `${prefix}_${randomBytes(8).toString('hex')}`;
}
