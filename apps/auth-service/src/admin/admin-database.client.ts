import { postgresOptions } from '@platform/database';
import { DataSource } from 'typeorm';
import { AUTH_SCHEMA } from '../migrations/schemas';

/** Runs `work` on a connection of its own to the service's database. */
export async function withDatabase<T>(url: string, work: (dataSource: DataSource) => Promise<T>): Promise<T> {
  const settings = { ...AUTH_SCHEMA.settings, applicationName: 'auth-service-admin' };
  const dataSource = new DataSource(postgresOptions({ ...settings, url, poolSize: 1 }));
  await dataSource.initialize();
  try {
    return await work(dataSource);
  } finally {
    await dataSource.destroy();
  }
}
