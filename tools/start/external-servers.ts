import { createHash } from 'node:crypto';
import { connect } from 'amqplib';
import { FriendlyError } from '#platform/errors.ts';
import { queryAt } from '#platform/postgresql.ts';

/** Servers that the user named; null where a private one is to be started. */
export interface ExternalServers {
  readonly databaseUrl: string | null;
  readonly rabbitmqUrl: string | null;
}

/**
 * Reads DATABASE_URL and RABBITMQ_URL; an empty variable names nothing.
 * @throws {FriendlyError} when one of them is no address of its kind (the message does not repeat it: it may hold a password).
 */
export function readExternalServers(environment: NodeJS.ProcessEnv): ExternalServers {
  const { DATABASE_URL, RABBITMQ_URL } = environment;
  requireProtocol(
    'DATABASE_URL',
    DATABASE_URL,
    /^postgres(ql)?:$/,
    'postgres://user:password@host:5432/name',
  );
  requireProtocol('RABBITMQ_URL', RABBITMQ_URL, /^amqps?:$/, 'amqp://user:password@host:5672');
  return { databaseUrl: DATABASE_URL || null, rabbitmqUrl: RABBITMQ_URL || null };
}

function requireProtocol(
  variable: string,
  address: string | undefined,
  protocol: RegExp,
  example: string,
): void {
  if (address && !(URL.canParse(address) && protocol.test(new URL(address).protocol))) {
    throw new FriendlyError(`${variable} must look like ${example}`);
  }
}

/**
 * The file that holds the services' secrets: one per database, because the rows of a database were encrypted and signed with
 * the secrets it was first used with.
 */
export function secretFileName(databaseUrl: string | null): string {
  if (databaseUrl === null) return 'secrets.json';
  const { host, pathname } = new URL(databaseUrl);
  return `secrets-${createHash('sha256').update(`${host}${pathname}`).digest('hex').slice(0, 12)}.json`;
}

/** An address as it may be shown: without user and password. */
export function withoutCredentials(address: string): string {
  const { protocol, host, pathname } = new URL(address);
  return `${protocol}//${host}${pathname}`;
}

/** @throws {FriendlyError} when no session can be opened at DATABASE_URL. */
export async function checkDatabase(databaseUrl: string): Promise<void> {
  try {
    await queryAt(databaseUrl);
  } catch (error) {
    throw unusable('DATABASE_URL', databaseUrl, error);
  }
}

/** @throws {FriendlyError} when no connection can be opened at RABBITMQ_URL. */
export async function checkBroker(rabbitmqUrl: string): Promise<void> {
  try {
    const connection = await connect(rabbitmqUrl, { timeout: 5_000 });
    await connection.close();
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
