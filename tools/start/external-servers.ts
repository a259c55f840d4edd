import { createHash } from 'node:crypto';
import { connect } from 'amqplib';
import { FriendlyError } from '#platform/errors.ts';
import { queryAt } from '#platform/postgresql.ts';

/** Servers that the user named; null stands for a private server. */
export interface ExternalServers {
  readonly databaseUrl: string | null;
  /** URL of the same database for the owner of the tables: without a pooler, or with another role. */
  readonly migrationUrl: string | null;
  readonly rabbitmqUrl: string | null;
}

/**
 * Reads DATABASE_URL, MIGRATION_DATABASE_URL and RABBITMQ_URL; an empty variable counts as unset. Each may
 * list several hosts.
 * @throws {FriendlyError} if one of them is no URL of its kind. The message does not repeat the URL, because
 * it may contain a password.
 */
export function readExternalServers(environment: NodeJS.ProcessEnv): ExternalServers {
  const { DATABASE_URL, MIGRATION_DATABASE_URL, RABBITMQ_URL } = environment;
  const databases = { DATABASE_URL, MIGRATION_DATABASE_URL };
  for (const [variable, address] of Object.entries(databases))
    requireProtocol(variable, address, /^postgres(ql)?:$/, 'postgres://user:password@host:5432/name');
  requireProtocol('RABBITMQ_URL', RABBITMQ_URL, /^amqps?:$/, 'amqp://user:password@host:5672');
  if (MIGRATION_DATABASE_URL && !DATABASE_URL)
    throw new FriendlyError(
      'MIGRATION_DATABASE_URL goes with DATABASE_URL, the same database for the services',
    );
  return {
    databaseUrl: DATABASE_URL || null,
    migrationUrl: MIGRATION_DATABASE_URL || null,
    rabbitmqUrl: RABBITMQ_URL || null,
  };
}

function requireProtocol(
  variable: string,
  address: string | undefined,
  protocol: RegExp,
  example: string,
): void {
  const isOne = (each: string): boolean => URL.canParse(each) && protocol.test(new URL(each).protocol);
  if (address && !perHost(address).every(isOne)) {
    throw new FriendlyError(`${variable} must look like ${example}`);
  }
}

/** Splits a URL that lists several hosts into one URL for each host. */
function perHost(address: string): string[] {
  const [, before, hosts = '', after] = /^([a-z]+:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s.exec(address) ?? [];
  return hosts.includes(',') ? hosts.split(',').map((host) => `${before}${host}${after}`) : [address];
}

/** Returns the hosts of a URL in their order, and its path. */
function placeOf(address: string): string {
  const urls = perHost(address).map((each) => new URL(each));
  return `${urls.map(({ host }) => host).join(',')}${urls[0]?.pathname ?? ''}`;
}

/** Tries the hosts in turn. @throws {unknown} the error of the last one */
async function atAnyHost(address: string, work: (address: string) => Promise<unknown>): Promise<void> {
  const [first = address, ...others] = perHost(address);
  let trying = work(first);
  for (const other of others) trying = trying.catch(() => work(other));
  await trying;
}

/**
 * Returns the name of the file with the services' secrets. There is one file per database, because the rows
 * of a database are encrypted and signed with the secrets of its first use.
 */
export function secretFileName(databaseUrl: string | null): string {
  if (databaseUrl === null) return 'secrets.json';
  return `secrets-${createHash('sha256').update(placeOf(databaseUrl)).digest('hex').slice(0, 12)}.json`;
}

/** Returns a URL without user and password, for display. */
export function withoutCredentials(address: string): string {
  return `${address.slice(0, address.indexOf(':'))}://${placeOf(address)}`;
}

/** @throws {FriendlyError} if no session can be opened at the variable's URL. */
export async function checkDatabase(
  databaseUrl: string,
  variable: 'DATABASE_URL' | 'MIGRATION_DATABASE_URL' = 'DATABASE_URL',
): Promise<void> {
  try {
    await atAnyHost(databaseUrl, (address) => queryAt(address));
  } catch (error) {
    throw unusable(variable, databaseUrl, error);
  }
}

/** @throws {FriendlyError} if no connection can be opened at RABBITMQ_URL. */
export async function checkBroker(rabbitmqUrl: string): Promise<void> {
  try {
    await atAnyHost(rabbitmqUrl, async (address) => {
      const connection = await connect(address, { timeout: 5_000 });
      await connection.close();
    });
  } catch (error) {
    throw unusable('RABBITMQ_URL', rabbitmqUrl, error);
  }
}

function unusable(variable: string, address: string, error: unknown): FriendlyError {
  const reason = error instanceof Error && error.message ? error.message : 'no response';
  return new FriendlyError(
    `${variable} names ${withoutCredentials(address)}, which cannot be used: ${reason}`,
    {
      cause: error,
    },
  );
}
