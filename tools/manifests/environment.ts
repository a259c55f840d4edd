import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { parse } from 'yaml';
import type { IEnvVarSource } from 'kubernetes-models/v1/EnvVarSource';
import type { z } from 'zod';
import type { Container, KubernetesObject } from './kubernetes-object.ts';

/** A configuration schema: a Zod object, with or without refinements. */
export type ConfigSchema = z.ZodObject;

interface SchemaPlace {
  /** Relative to the workspace. */
  readonly file: string;
  readonly name: string;
}

const MIGRATION: SchemaPlace = { file: 'libs/database/src/migrate.ts', name: 'migrationConfigSchema' };

/** Schema of each entry point's environment: service → entry point → place. */
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

/** Returns the entry points that the projects declare: `auth-service` → `main`, `migrate`, … */
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
 * Loads the schema of an entry point. Works only under Jest, which compiles decorators and resolves workspace
 * libraries.
 */
export async function loadSchema(workspace: string, app: string, entryPoint: string): Promise<ConfigSchema> {
  const place = SCHEMA_PLACES[app]?.[entryPoint];
  if (place === undefined) throw new Error(`${app} ${entryPoint}: SCHEMA_PLACES does not list its schema`);
  const module = (await import(join(workspace, place.file))) as Record<string, ConfigSchema | undefined>;
  const schema = module[place.name];
  if (schema === undefined) throw new Error(`${place.file} exports no ${place.name}`);
  return schema;
}

/** Environment of a container's process. */
export interface ContainerEnvironment {
  readonly variables: Readonly<Record<string, string>>;
  /** Variables that others refer to as `$(NAME)`; a schema need not know them. */
  readonly ingredients: ReadonlySet<string>;
}

const REFERENCE = /\$\(([A-Za-z_][A-Za-z0-9_]*)\)/g;

/**
 * Returns a container's environment as Kubernetes builds it: `envFrom` in order, then `env` in order, where
 * `$(NAME)` expands to an earlier variable.
 * @param secretValue returns the value of a secret's key, undefined if there is no such key
 * @throws {Error} for a name that `env` sets twice, for a missing reference that is not optional, and for a
 * `$(NAME)` that no earlier variable resolves
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
      throw new Error(`${container.name}: envFrom may refer only to ConfigMaps, and without a prefix`);
    Object.assign(variables, configMapData(configMapRef.name ?? '', objects));
  }
  const seen = new Set<string>();
  for (const { name, value, valueFrom } of container.env ?? []) {
    if (seen.has(name)) throw new Error(`${container.name}: ${name} is set twice`);
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
    if (found === undefined) throw new Error(`${where}: no earlier variable is called ${name}`);
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
 * Returns the containers of a compose file that are built from an app, with `${NAME:?}` replaced from an
 * environment file.
 * @throws {Error} for a duplicate key, and for a variable that the environment file does not define
 */
export function composeContainers(composeText: string, environmentText: string): ComposeContainer[] {
  // Compose files use merge keys to avoid repetition.
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

/** Replaces `${NAME:?}` as Compose does. @throws {Error} for a name that is not in `values` */
export function substitute(value: string, values: Readonly<Record<string, string>>): string {
  return value.replace(/\$\{(\w+)(?::?\?[^}]*)?\}/g, (_, name: string) => {
    const found = values[name];
    if (found === undefined) throw new Error(`the environment file has no ${name}`);
    return found;
  });
}

/** Variables that Node itself reads, before any of our code runs. */
const RUNTIME_VARIABLES: ReadonlySet<string> = new Set(['NODE_OPTIONS', 'NODE_EXTRA_CA_CERTS']);

/** Returns the variables that are missing, invalid or unknown to the schema, by name; never a value. */
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

/** Returns a value that a schema accepts for a secret of this name; different names get different keys. */
export function sampleSecret(name: string): string {
  const key = Buffer.from(name.padEnd(32, '.').slice(0, 32)).toString('base64url');
  if (name.endsWith('DATABASE_URL')) return 'postgres://role:password@postgresql:5432/database';
  if (name.startsWith('RABBITMQ_') && name.endsWith('_URL')) return 'amqps://user:password@rabbitmq:5671';
  if (name.endsWith('_KEYS')) return `before:${key}`;
  if (name === 'LEGACY_ISSUERS')
    return JSON.stringify([{ issuer: 'old', audience: 'old', keys: [{ secret: key }] }]);
  return key;
}
