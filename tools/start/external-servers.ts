import { createHash } from 'node:crypto';
import { connect } from 'amqplib';
import { FriendlyError } from '#platform/errors.ts';
import { queryAt } from '#platform/postgresql.ts';

/** Servers that the user named; null where a private one is to be started. */
export interface ExternalServers {
  readonly databaseUrl: string | null;
  /** The same database for who owns the tables: past a pooler, or as another role. */
  readonly migrationUrl: string | null;
  readonly rabbitmqUrl: string | null;
}

/**
 * Reads DATABASE_URL, MIGRATION_DATABASE_URL and RABBITMQ_URL; an empty variable names nothing. Each may name
 * several hosts.
 * @throws {FriendlyError} when one of them is no address of its kind (the message does not repeat it: it may
 * hold a password).
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

/** One address per host of an address that names several. */
function perHost(address: string): string[] {
  const [, before, hosts = '', after] = /^([a-z]+:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s.exec(address) ?? [];
  return hosts.includes(',') ? hosts.split(',').map((host) => `${before}${host}${after}`) : [address];
}

/** Its hosts in the order they stand, and the name. */
function placeOf(address: string): string {
  const urls = perHost(address).map((each) => new URL(each));
  return `${urls.map(({ host }) => host).join(',')}${urls[0]?.pathname ?? ''}`;
}

/** Tries the hosts in turn. @throws {unknown} what the last one said */
async function atAnyHost(address: string, work: (address: string) => Promise<unknown>): Promise<void> {
  const [first = address, ...others] = perHost(address);
  let trying = work(first);
  for (const other of others) trying = trying.catch(() => work(other));
  await trying;
}

/**
 * The file that holds the services' secrets: one per database, because the rows of a database were encrypted
 * and signed with the secrets it was first used with.
 */
export function secretFileName(databaseUrl: string | null): string {
  if (databaseUrl === null) return 'secrets.json';
  return `secrets-${createHash('sha256').update(placeOf(databaseUrl)).digest('hex').slice(0, 12)}.json`;
}

/** An address as it may be shown: without user and password. */
export function withoutCredentials(address: string): string {
  return `${address.slice(0, address.indexOf(':'))}://${placeOf(address)}`;
}

/** @throws {FriendlyError} when no session can be opened at the variable's address. */
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

/** @throws {FriendlyError} when no connection can be opened at RABBITMQ_URL. */
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
  const reason = error instanceof Error && error.message ? error.message : 'no answer';
  return new FriendlyError(
    `${variable} names ${withoutCredentials(address)}, which cannot be used: ${reason}`,
    {
      cause: error,
    },
  );
}
