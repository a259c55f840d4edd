import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { tracingConfigShape } from '../tracing/tracing-settings';
import { postgresAddresses } from './server-addresses';

const MEBIBYTE = 1_024 * 1_024;

const port = z.coerce.number().int().min(0).max(65_535);

/**
 * Returns a schema for a secret in padded or unpadded base64url, which it decodes.
 * @param minBytes minimum bytes after decoding
 */
export function secret({ minBytes }: { minBytes: number }): z.ZodType<Buffer, string> {
  return z
    .string()
    .regex(/^[A-Za-z0-9_-]+={0,2}$/, 'must be base64url text')
    .transform((text) => Buffer.from(text, 'base64url'))
    .refine((bytes) => bytes.length >= minBytes, `must hold at least ${minBytes} bytes`);
}

/** Returns a schema for a switch: `true`/`false`, `1`/`0`, `yes`/`no` or `on`/`off`. */
export function flag(): z.ZodType<boolean, string> {
  return z.stringbool();
}

/**
 * The variables that every service reads; spread into a service's own schema:
 * `z.object({...serviceConfigShape, MY_VAR: …})`. Durations are in milliseconds. Variables whose default
 * depends on NODE_ENV (HOST, SHUTDOWN_GRACE_MS, OPENAPI_ENABLED) are undefined unless given.
 */
export const serviceConfigShape = {
  NODE_ENV: z.enum(['development', 'test', 'production']).default('development'),
  /** Address to listen on; default 0.0.0.0 in production, 127.0.0.1 otherwise. */
  HOST: z.string().min(1).optional(),
  PORT: port,
  METRICS_PORT: port,
  /** Address that the metrics listen on; HOST unless given. */
  METRICS_HOST: z.string().min(1).optional(),
  LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
  DATABASE_URL: postgresAddresses,
  DATABASE_POOL_SIZE: z.coerce.number().int().min(1).max(1_000).default(20),
  /**
   * Time between "not ready" and "stop accepting", for load balancers to remove the replica; default 5,000 in
   * production, 0 otherwise.
   */
  SHUTDOWN_GRACE_MS: z.coerce.number().int().min(0).max(300_000).optional(),
  /** Maximum time for work in flight, after the grace period. */
  SHUTDOWN_TIMEOUT_MS: z.coerce.number().int().min(100).max(600_000).default(25_000),
  /**
   * Maximum requests in flight on one connection (pipelining). A further request gets 429, and the connection
   * is closed.
   */
  HTTP_PIPELINE_LIMIT: z.coerce.number().int().min(1).max(1_000).default(16),
  /**
   * Time after which an unread response closes its connection, and over which a body must keep the minimum
   * rate (500 B/s).
   */
  HTTP_STALL_LIMIT_MS: z.coerce.number().int().min(500).max(600_000).default(10_000),
  /**
   * Maximum memory in bytes of incomplete request bodies, over all connections. Beyond it, the request with
   * the oldest body gets 503.
   */
  HTTP_BODY_BYTES_LIMIT: z.coerce
    .number()
    .int()
    .min(4 * MEBIBYTE)
    .max(4_096 * MEBIBYTE)
    .default(64 * MEBIBYTE),
  /**
   * Maximum bytes of unread responses, over all connections. A response beyond it gets 503. One connection
   * may use a quarter.
   */
  HTTP_WAITING_BYTES_LIMIT: z.coerce
    .number()
    .int()
    .min(4 * MEBIBYTE)
    .max(4_096 * MEBIBYTE)
    .default(64 * MEBIBYTE),
  /** Version that diagnostics report; default: the version of the package. */
  SERVICE_VERSION: z
    .string()
    .min(1)
    .max(100)
    .default(() => packageVersion(process.cwd())),
  /** Whether to serve `/openapi.json` and `/docs`; by default everywhere but in production. */
  OPENAPI_ENABLED: flag().optional(),
  ...tracingConfigShape,
} as const;

export type ServiceConfig = z.output<z.ZodObject<typeof serviceConfigShape>>;

/** Returns the version in the nearest `package.json` at or above `folder`; `0.0.0` if there is none. */
function packageVersion(folder: string): string {
  for (let at = folder; ; at = dirname(at)) {
    const file = join(at, 'package.json');
    const version = existsSync(file) ? versionIn(file) : undefined;
    if (version !== undefined) return version;
    if (dirname(at) === at) return '0.0.0';
  }
}

function versionIn(file: string): string | undefined {
  const { version } = JSON.parse(readFileSync(file, 'utf8')) as { version?: unknown };
  return typeof version === 'string' ? version : undefined;
}

/**
 * Configuration is missing or wrong. The message names the variables and what is wrong with them, never their
 * values. Logs show `problems` instead of the message and the stack.
 */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';

  /** @param problems messages by variable name */
  constructor(readonly problems: Readonly<Record<string, readonly string[]>>) {
    const lines = Object.entries(problems).map(
      ([variable, messages]) => `  ${variable}: ${messages.join('; ')}`,
    );
    super(`invalid configuration:\n${lines.join('\n')}`);
  }
}

/**
 * Reads a service's configuration, once at startup, and freezes it. An empty variable counts as absent, so
 * that `KEY=` in an environment file means the default.
 * @param env the process environment unless given
 * @throws {ConfigError} if a variable is missing or wrong; it never contains a value
 */
export function loadConfig<S extends z.ZodType>(
  schema: S,
  env: NodeJS.ProcessEnv = process.env,
): Readonly<z.output<S>> {
  const given = Object.fromEntries(
    Object.entries(env).filter(([, value]) => value !== undefined && value !== ''),
  );
  // Without `reportInput` zod omits the input from its issues, so a message cannot quote a secret.
  const parsed = schema.safeParse(given, { reportInput: false });
  if (parsed.success) return Object.freeze(parsed.data);
  const problems: Record<string, string[]> = {};
  for (const issue of parsed.error.issues) {
    const variable = String(issue.path[0] ?? 'configuration');
    const absent = issue.path.length > 0 && given[variable] === undefined;
    (problems[variable] ??= []).push(absent ? 'is required' : issue.message);
  }
  throw new ConfigError(problems);
}
