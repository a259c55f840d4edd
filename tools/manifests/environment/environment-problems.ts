import type { ConfigSchema } from './app-schemas.ts';
import type { ContainerEnvironment } from './container-environment.ts';

/** What the runtime reads itself, before any code of ours. */
const RUNTIME_VARIABLES: ReadonlySet<string> = new Set(['NODE_OPTIONS', 'NODE_EXTRA_CA_CERTS']);

/** Variables that are missing, wrong or unknown to the schema, by name; never a value. */
export function environmentProblems(
  { variables, ingredients }: ContainerEnvironment,
  schema: ConfigSchema,
): string[] {
  const known = new Set(Object.keys(schema.shape));
  const unknown = Object.keys(variables).filter(
    (name) => !known.has(name) && !RUNTIME_VARIABLES.has(name) && !ingredients.has(name),
  );
  const given = Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== ''));
  const { error } = schema.safeParse(given, { reportInput: false });
  return [
    ...unknown.map((name) => `no schema knows ${name}`),
    ...(error?.issues ?? []).map(({ path, message }) => {
      const name = String(path[0]);
      return given[name] === undefined ? `${name} is required` : `${name} ${message}`;
    }),
  ];
}

/** A value that a schema accepts for a secret of this name; different names get different keys. */
export function sampleSecret(name: string): string {
  const key = Buffer.from(name.padEnd(32, '.').slice(0, 32)).toString('base64url');
  if (name.endsWith('DATABASE_URL')) return 'postgres://role:password@postgresql:5432/database';
  if (name.startsWith('RABBITMQ_') && name.endsWith('_URL')) return 'amqps://user:password@rabbitmq:5671';
  if (name.endsWith('_PREVIOUS_HMAC_KEYS')) return `before:${key}`;
  if (name === 'LEGACY_ISSUERS')
    return JSON.stringify([{ issuer: 'old', audience: 'old', keys: [{ secret: key }] }]);
  return key;
}
