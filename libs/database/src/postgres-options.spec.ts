import { postgresOptions, quoteIdentifier } from './index';

const settings = {
  schema: 'task',
  applicationName: 'task-service',
  entities: [],
  migrations: [],
  poolSize: 5,
};

describe('postgresOptions', () => {
  it('bounds every wait and never changes the schema by itself', () => {
    const options = postgresOptions({ ...settings, url: 'postgres://u:p@db/x' });
    expect(options).toMatchObject({
      synchronize: false,
      connectTimeoutMS: 3_000,
      poolSize: 5,
      logging: false,
    });
    expect(options.extra).toMatchObject({
      statement_timeout: 10_000,
      query_timeout: 12_000,
      options: '-c search_path="task" -c default_transaction_isolation=READ\\ COMMITTED',
    });
  });

  it('joins its server options with those of the address', () => {
    const options = postgresOptions({
      ...settings,
      url: 'postgres://u:p@db/x?options=-c%20work_mem%3D8MB&sslmode=disable',
    });
    expect(options.url).toBe('postgres://u:p@db/x?sslmode=disable');
    expect(options.extra).toMatchObject({
      options: '-c work_mem=8MB -c search_path="task" -c default_transaction_isolation=READ\\ COMMITTED',
    });
  });

  it("applies the service's isolation to single statements", () => {
    const options = postgresOptions({
      ...settings,
      url: 'postgres://u:p@db/x',
      defaultIsolation: 'REPEATABLE READ',
    });
    expect((options.extra as { options: string }).options).toContain(
      '-c default_transaction_isolation=REPEATABLE\\ READ',
    );
  });

  it('sets no timeouts if the statement timeout is 0', () => {
    expect(
      postgresOptions({ ...settings, url: 'postgres://db/x', statementTimeoutMs: 0 }).extra,
    ).not.toHaveProperty('query_timeout');
  });
});

describe('quoteIdentifier', () => {
  it('doubles quotes', () => {
    expect(quoteIdentifier('a"; DROP')).toBe('"a""; DROP"');
  });
});
