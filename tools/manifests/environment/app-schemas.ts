import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { z } from 'zod';

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
    'load-development-identities': {
      file: 'apps/auth-service/src/development/load-identities.ts',
      name: 'developmentConfigSchema',
    },
  },
  'settings-service': {
    main: { file: 'apps/settings-service/src/config.ts', name: 'settingsServiceConfigSchema' },
    migrate: MIGRATION,
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

/** Loads the schema of an entry point. Only where TypeScript with decorators and import names runs: under Jest. */
export async function loadSchema(workspace: string, app: string, entryPoint: string): Promise<ConfigSchema> {
  const place = SCHEMA_PLACES[app]?.[entryPoint];
  if (place === undefined) throw new Error(`${app} ${entryPoint}: nobody says where its schema is`);
  const module = (await import(join(workspace, place.file))) as Record<string, ConfigSchema | undefined>;
  const schema = module[place.name];
  if (schema === undefined) throw new Error(`${place.file} exports no ${place.name}`);
  return schema;
}
