import type { INestApplicationContext, Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DatabaseModule, runMigrations } from '@platform/database';
import { ServiceDefaultsModule, ShutdownRegistry } from '@platform/service-defaults';
import { createTestDatabase, type TestDatabase } from '@platform/testing';
import type { MigrationInterface, QueryRunner } from 'typeorm';
import { InboxMessage, inboxMigrations, MessagingModule } from '../src/index';

/** A logger without output: these suites cause outages on purpose. */
export const SILENT = { log: () => undefined, warn: () => undefined, error: () => undefined };

export const NAMESPACE = 'Platform.Contracts';
const SCHEMA = 'messaging';

/** Creates the table in which the suites' handlers record their effects, in the message's transaction. */
class CreateEffects1767225600001 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `CREATE TABLE ${SCHEMA}.effects (id bigint GENERATED ALWAYS AS IDENTITY, note text NOT NULL)`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP TABLE ${SCHEMA}.effects`);
  }
}

const MIGRATIONS = [...inboxMigrations(SCHEMA), CreateEffects1767225600001];

/** Creates a database with the inbox and the table of effects. */
export function createInboxDatabase(): Promise<TestDatabase> {
  return createTestDatabase({
    migrate: async (ownerUrl, appRole) => {
      const settings = { schema: SCHEMA, applicationName: 'messaging-test', migrations: MIGRATIONS };
      const appRoleGrants = (role: string): string[] => [
        `GRANT SELECT, INSERT, UPDATE, DELETE ON ${SCHEMA}.inbox, ${SCHEMA}.effects TO ${role}`,
      ];
      await runMigrations({ ...settings, url: ownerUrl }, { appRole, appRoleGrants });
    },
  });
}

/** Returns the notes of committed handlers, in order. */
export async function effects(database: TestDatabase): Promise<string[]> {
  const rows = await database.query<{ note: string }>(`SELECT note FROM ${SCHEMA}.effects ORDER BY id`);
  return rows.map(({ note }) => note);
}

export interface MessagingAppOptions {
  databaseUrl: string;
  mainUrl: string;
  schedulingUrl?: string;
  handlers: Type[];
}

/** Starts a service that has messaging and nothing else. */
export function startMessagingApp(options: MessagingAppOptions): Promise<INestApplicationContext> {
  const { databaseUrl, mainUrl, schedulingUrl = mainUrl, handlers } = options;
  class RootModule {}
  const root = {
    module: RootModule,
    imports: [
      ServiceDefaultsModule.forRoot({ config: { LOG_LEVEL: 'fatal' }, name: 'messaging-test' }),
      DatabaseModule.forRoot({
        url: databaseUrl,
        schema: SCHEMA,
        applicationName: 'messaging-test',
        entities: [InboxMessage],
        migrations: MIGRATIONS,
        poolSize: 10,
      }),
      MessagingModule.forRootAsync({
        useFactory: () => ({
          service: 'messaging-test',
          version: '1.2.3',
          namespace: NAMESPACE,
          main: { url: mainUrl },
          scheduling: { url: schedulingUrl },
        }),
      }),
    ],
    providers: handlers,
  };
  return NestFactory.createApplicationContext(root, { logger: false, abortOnError: false });
}

/** Stops the service as SIGTERM would. */
export async function stopGracefully(app: INestApplicationContext): Promise<void> {
  await Promise.all(app.get(ShutdownRegistry).drainHooks.map((hook) => hook.drain()));
  await app.close();
}
