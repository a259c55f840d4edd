import { createTestDatabase, securityQueries } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import { migrate } from './task-fixture';

describe('the queries of SECURITY.md', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase({ migrate });
  });
  afterAll(() => database.drop());

  it.each(securityQueries('task'))('run: %s', async (sql) => {
    await expect(database.query(sql)).resolves.toBeInstanceOf(Array);
  });
});
