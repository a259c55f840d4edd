import { postgresOptions } from '@platform/database';
import { createTestDatabase } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import { DataSource } from 'typeorm';
import { ENTITIES, MIGRATIONS, SCHEMA } from '../src/database-layout';
import { Trigger } from '../src/scheduler/trigger.entity';
import { TriggersRepository } from '../src/scheduler/triggers.repository';
import { migrate } from './task-fixture';

const AT_ONCE = 16;
const settings = {
  schema: SCHEMA,
  applicationName: 'simultaneous',
  entities: ENTITIES,
  migrations: MIGRATIONS,
};

describe('a trigger that several transactions create concurrently', () => {
  let database: TestDatabase;
  let dataSource: DataSource;
  beforeAll(async () => {
    database = await createTestDatabase({ migrate });
    dataSource = new DataSource(postgresOptions({ ...settings, url: database.url, poolSize: AT_ONCE }));
    await dataSource.initialize();
  });
  afterAll(async () => {
    await dataSource.destroy();
    await database.drop();
  });

  it('is created once, and found by the others', async () => {
    const triggers = new TriggersRepository(dataSource.getRepository(Trigger));
    const wanted = { schedule: '0 6 * * *', timeZone: 'UTC', nextFireAt: new Date('2090-01-01T06:00:00Z') };
    for (let facilityId = 1; facilityId <= 100; facilityId += 1) {
      const ask = () =>
        dataSource.transaction((m) =>
          triggers.insertOrLock(m, [{ jitterSeconds: 0, facilityId, ...wanted }]),
        );
      const answers = await Promise.all(Array.from({ length: AT_ONCE }, ask));
      expect(answers.filter(({ created }) => created.length === 1)).toHaveLength(1);
    }
  });
});
