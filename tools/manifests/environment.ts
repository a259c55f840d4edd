import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { parse } from 'yaml';
import type { IEnvVarSource } from 'kubernetes-models/v1/EnvVarSource';
import type { z } from 'zod';
import type { Container, KubernetesObject } from './kubernetes-object.ts';

/** A configuration schema: refined or not, it has the shape of an object. */
export type ConfigSchema = z.ZodObject;

interface SchemaPlace {
  /** Relative to the workspace. */
  readonly file: string;
  readonly name: string;
}

const MIGRATION: SchemaPlace = { file: 'libs/database/src/migrate.ts', name: 'migrationConfigSchema' };

/** Where the schema of each entry point's environment is. */
export const SCHEMA_PLACES: Readonly<Record<string, Readonly<Record<string, SchemaPlace>>>> = {
  'auth-service': {
    main: { file: 'apps/auth-service/src/config.ts', name: 'authConfigSchema' },
    migrate: {
      file: 'apps/auth-service/src/migrations/migration-settings.ts',
      name: 'migrationConfigSchema',
    },
    admin: { file: 'apps/auth-service/src/admin/administration.ts', name: 'adminConfigSchema' },
    install: {
      file: 'apps/auth-service/src/installation/platform-services.ts',
      name: 'installationConfigSchema',
    },
    'load-development-identities': {
      file: 'apps/auth-service/src/development/load-identities.ts',
      name: 'developmentConfigSchema',
    },
  },
  'settings-service': {
    main: { file: 'apps/settings-service/src/config.ts', name: 'settingsServiceConfigSchema' },
    migrate: MIGRATION,
    admin: { file: 'apps/settings-service/src/config.ts', name: 'settingsAdminConfigSchema' },
  },
  'task-service': {
    main: { file: 'apps/task-service/src/config.ts', name: 'taskServiceConfigSchema' },
    migrate: MIGRATION,
    admin: { file: 'apps/task-service/src/config.ts', name: 'taskAdminConfigSchema' },
  },
};

/** `auth-service` → `main`, `migrate`, …: the entry points that the projects declare. */
export function declaredEntryPoints(workspace: string): Record<string, string[]> {
  const projects = readdirSync(join(workspace, 'apps')).filter((name) => name.endsWith('-service'));
  return Object.fromEntries(
    projects.map((name) => {
      const file = join(workspace, 'apps', name, 'project.json');
      const project = JSON.parse(readFileSync(file, 'utf8')) as { metadata: { entryPoints: string[] } };
      return [
        name,
        project.metadata.entryPoints.map((path) => path.replace(/^src\//, '').replace(/\.ts$/, '')),
      ];
    }),
  );
}

/**
 * Loads the schema of an entry point. Only where TypeScript with decorators and import names runs: under
 * Jest.
 */
export async function loadSchema(workspace: string, app: string, entryPoint: string): Promise<ConfigSchema> {
  const place = SCHEMA_PLACES[app]?.[entryPoint];
  if (place === undefined) throw new Error(`${app} ${entryPoint}: nobody says where its schema is`);
  const module = (await import(join(workspace, place.file))) as Record<string, ConfigSchema | undefined>;
  const schema = module[place.name];
  if (schema === undefined) throw new Error(`${place.file} exports no ${place.name}`);
  return schema;
}

/** What a container's process finds in its environment. */
export interface ContainerEnvironment {
  readonly variables: Readonly<Record<string, string>>;
  /** Variables that are there only to be put into others. */
  readonly ingredients: ReadonlySet<string>;
}

const REFERENCE = /\$\(([A-Za-z_][A-Za-z0-9_]*)\)/g;

/**
 * The environment of a container as Kubernetes puts it together: `envFrom` in its order, then `env` in its
 * order, where `$(NAME)` stands for a variable that came before.
 * @param secretValue the value of a secret's key, or undefined when it does not exist
 * @throws {Error} for a name twice in `env`, for what is missing and not optional, and for a `$(NAME)` that
 * nothing replaces
 */
export function containerEnvironment(
  container: Container,
  objects: readonly KubernetesObject[],
  secretValue: (secret: string, key: string, variable: string) => string | undefined,
): ContainerEnvironment {
  const variables: Record<string, string> = {};
  const ingredients = new Set<string>();
  for (const { configMapRef, secretRef, prefix } of container.envFrom ?? []) {
    if (configMapRef === undefined || secretRef !== undefined || prefix !== undefined)
      throw new Error(`${container.name}: only ConfigMaps may be taken over whole`);
    Object.assign(variables, configMapData(configMapRef.name ?? '', objects));
  }
  const seen = new Set<string>();
  for (const { name, value, valueFrom } of container.env ?? []) {
    if (seen.has(name)) throw new Error(`${container.name}: ${name} is there twice`);
    seen.add(name);
    const text =
      valueFrom === undefined
        ? expand(value ?? '', variables, ingredients, `${container.name}: ${name}`)
        : fromReference(valueFrom, name, objects, secretValue);
    if (text !== undefined) variables[name] = text;
  }
  return { variables, ingredients };
}

function expand(
  value: string,
  variables: Readonly<Record<string, string>>,
  ingredients: Set<string>,
  where: string,
): string {
  return value.replace(REFERENCE, (_, name: string) => {
    const found = variables[name];
    if (found === undefined) throw new Error(`${where}: there is no ${name} before it`);
    ingredients.add(name);
    return found;
  });
}

function fromReference(
  { secretKeyRef, configMapKeyRef }: IEnvVarSource,
  variable: string,
  objects: readonly KubernetesObject[],
  secretValue: (secret: string, key: string, variable: string) => string | undefined,
): string | undefined {
  const reference = secretKeyRef ?? configMapKeyRef;
  if (reference === undefined) throw new Error(`${variable}: an unknown kind of reference`);
  const { name = '', key, optional = false } = reference;
  const value = secretKeyRef ? secretValue(name, key, variable) : configMapData(name, objects)[key];
  if (value === undefined && !optional) throw new Error(`${variable}: there is no ${key} in ${name}`);
  return value;
}

function configMapData(name: string, objects: readonly KubernetesObject[]): Record<string, string> {
  const found = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === name);
  if (found === undefined) throw new Error(`there is no ConfigMap ${name}`);
  return found.data as Record<string, string>;
}

/** A container of docker/compose.yaml that runs one of the services' entry points. */
export interface ComposeContainer {
  readonly name: string;
  readonly app: string;
  readonly entryPoint: string;
  readonly variables: Readonly<Record<string, string>>;
}

interface ComposeService {
  build?: { args?: { APP?: string } };
  command?: string[];
  environment?: Record<string, string | number | boolean>;
}

/**
 * The containers of a compose file that are built from an app, with `${NAME:?}` replaced from an environment
 * file.
 * @throws {Error} for a key twice, and for a variable that the environment file does not have
 */
export function composeContainers(composeText: string, environmentText: string): ComposeContainer[] {
  // Merge keys are how compose files repeat nothing.
  const compose = parse(composeText, { merge: true, uniqueKeys: true }) as {
    services: Record<string, ComposeService>;
  };
  const values = readEnvironmentFile(environmentText);
  return Object.entries(compose.services).flatMap(([name, { build, command, environment = {} }]) => {
    const app = build?.args?.APP;
    if (app === undefined) return [];
    const entryPoint = command?.[1]?.replace(/\.js$/, '') ?? 'main';
    const variables = Object.fromEntries(
      Object.entries(environment).map(([key, value]) => [key, substitute(String(value), values)]),
    );
    return [{ name, app, entryPoint, variables }];
  });
}

export function readCompose(composeFile: string, environmentFile: string): ComposeContainer[] {
  return composeContainers(readFileSync(composeFile, 'utf8'), readFileSync(environmentFile, 'utf8'));
}

export function readEnvironmentFile(text: string): Record<string, string> {
  return parseEnv(text) as Record<string, string>;
}

/** `${NAME:?}` replaced, as compose does it. @throws {Error} for what is not there */
export function substitute(value: string, values: Readonly<Record<string, string>>): string {
  return value.replace(/\$\{(\w+)(?::?\?[^}]*)?\}/g, (_, name: string) => {
    const found = values[name];
    if (found === undefined) throw new Error(`the environment file has no ${name}`);
    return found;
  });
}

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
  if (name.endsWith('_KEYS')) return `before:${key}`;
  if (name === 'LEGACY_ISSUERS')
    return JSON.stringify([{ issuer: 'old', audience: 'old', keys: [{ secret: key }] }]);
  return key;
}
