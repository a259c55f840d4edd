import { createTestDatabase } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import { warnOfWeaknesses } from '../src/server-guarantees';
import { connectCounters } from './counters';

const WARNING = 'PostgreSQL may lose acknowledged writes: synchronous_commit is off';

describe('the weaknesses of a server', () => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await createTestDatabase({ migrate: () => Promise.resolve() });
  });

  afterAll(() => database.drop());

  /** Returns the weaknesses that a service finds if it starts now, as the application's role. */
  async function start(): Promise<{ weaknesses: number; log: string }> {
    const written = jest.spyOn(process.stdout, 'write').mockReturnValue(true);
    const { url } = await database.createRole();
    const dataSource = await connectCounters(url, { poolSize: 1 });
    try {
      const weaknesses = await warnOfWeaknesses(dataSource);
      return { weaknesses, log: written.mock.calls.join('') };
    } finally {
      await dataSource.destroy();
      written.mockRestore();
    }
  }

  it('are counted again on each start', async () => {
    const change = (value: string): Promise<unknown> =>
      database.query(
        `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = ${value}', current_database()); END $$`,
      );
    await change('on');
    const before = await start();
    expect(before.log).not.toContain(WARNING);
    await change('off');
    const after = await start();
    expect(after.log).toContain(WARNING);
    expect(after.weaknesses).toBe(before.weaknesses + 1);
  });
});
