import pg from 'pg';

/** One service's database and its two roles: the owner runs the migrations, the application only uses the tables. */
export interface ServiceDatabase {
  readonly service: string;
  readonly ownerPassword: string;
  readonly appPassword: string;
}

export interface DatabaseUrls {
  readonly owner: string;
  readonly app: string;
}

/** Creates what is missing of each service's roles and database; safe to repeat. */
export function createDatabases(adminUrl: string, databases: readonly ServiceDatabase[]): Promise<void> {
  return administer(adminUrl, async (client) => {
    for (const database of databases) await createDatabase(client, database);
  });
}

/** Disconnects everybody and removes databases and roles again. */
export function dropDatabases(adminUrl: string, databases: readonly ServiceDatabase[]): Promise<void> {
  return administer(adminUrl, async (client) => {
    for (const { service } of databases) {
      await client.query(`DROP DATABASE IF EXISTS ${client.escapeIdentifier(service)} WITH (FORCE)`);
      for (const role of [`${service}_owner`, `${service}_app`])
        await client.query(`DROP ROLE IF EXISTS ${client.escapeIdentifier(role)}`);
    }
  });
}

async function administer(adminUrl: string, work: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = new pg.Client({ connectionString: adminUrl });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}

async function createDatabase(client: pg.Client, database: ServiceDatabase): Promise<void> {
  const { service } = database;
  await createRole(client, `${service}_owner`, database.ownerPassword);
  await createRole(client, `${service}_app`, database.appPassword);
  const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [service]);
  // CREATE DATABASE and GRANT take no parameters; the names are this project's own.
  const name = client.escapeIdentifier(service);
  if (rowCount === 0)
    await client.query(`CREATE DATABASE ${name} OWNER ${client.escapeIdentifier(`${service}_owner`)}`);
  await client.query(`REVOKE ALL ON DATABASE ${name} FROM PUBLIC`);
  await client.query(`GRANT CONNECT ON DATABASE ${name} TO ${client.escapeIdentifier(`${service}_app`)}`);
}

async function createRole(client: pg.Client, role: string, password: string): Promise<void> {
  const { rowCount } = await client.query('SELECT 1 FROM pg_roles WHERE rolname = $1', [role]);
  const verb = rowCount === 0 ? 'CREATE' : 'ALTER';
  await client.query(
    `${verb} ROLE ${client.escapeIdentifier(role)} LOGIN PASSWORD ${client.escapeLiteral(password)}`,
  );
}

/** Where a service finds its database on the server of `adminUrl`. */
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
