import { InjectDataSource } from '@nestjs/typeorm';
import { Controller, Get, Module } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import {
  createServiceApplication,
  loadConfig,
  Metrics,
  serviceConfigShape,
} from '@platform/service-defaults';
import { TcpProxy, createTestDatabase, eventually } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import request from 'supertest';
import { DataSource } from 'typeorm';
import { z } from 'zod';
import {
  DatabaseModule,
  DatabaseUnavailableError,
  inTransaction,
  isConnectionError,
  withConnectionRetry,
} from '../src';
import { PoolDriver } from '../src/pool';
import { connectCounters, counterSettings, migrateCounters } from './counters';

@Controller()
class HitsController {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  @Get('hits')
  hits(): Promise<unknown> {
    return this.dataSource.query('SELECT value FROM counter');
  }

  @Get('slow')
  slow(): Promise<unknown> {
    return this.dataSource.query('SELECT pg_sleep(1)');
  }
}

describe('a database outage', () => {
  let database: TestDatabase;
  let proxy: TcpProxy;
  let app: NestFastifyApplication;

  beforeAll(async () => {
    database = await createTestDatabase({ migrate: () => Promise.resolve() });
    proxy = await TcpProxy.start(database.url);
    const settings = counterSettings(proxy.url, { poolSize: 2, statementTimeoutMs: 500 });
    @Module({ imports: [DatabaseModule.forRoot(settings)], controllers: [HitsController] })
    class HitsModule {}
    app = await createServiceApplication({
      name: 'hits',
      title: 'Hits',
      config: loadConfig(z.object(serviceConfigShape), {
        NODE_ENV: 'test',
        PORT: '0',
        METRICS_PORT: '0',
        LOG_LEVEL: 'silent',
        DATABASE_URL: proxy.url,
      }),
      rootModule: HitsModule,
    });
    await app.listen(0, '127.0.0.1');
  });

  afterAll(async () => {
    await app.close();
    await proxy.stop();
    await database.drop();
  });

  const get = (path: string): request.Test => request(app.getHttpServer()).get(path);
  const expectStatus = (path: string, status: number): Promise<void> =>
    eventually(async () => expect((await get(path)).status).toBe(status));

  it('starts after the weaknesses of the server were counted', async () => {
    const text = await app.get(Metrics).registry.metrics();
    expect(text).toMatch(/^database_weaknesses\{database="counting"\} \d$/m);
  });

  it('is not ready, and has not started, until the migrations are applied', async () => {
    const response = await get('/health/startup');
    expect(response.status).toBe(503);
    expect(response.body.checks).toEqual({ migrations: 'failed' });
    expect((await get('/health/ready')).status).toBe(503);
    await migrateCounters(database.ownerUrl, new URL(database.url).username);
    await expectStatus('/health/startup', 200);
    expect((await get('/health/ready')).body.checks).toEqual({ migrations: 'ok', database: 'ok' });
  });

  it('causes 503 with Retry-After while it lasts, and ends when the database is back', async () => {
    expect((await get('/hits')).body).toEqual([{ value: 0 }]);
    await proxy.refuse();
    const response = await get('/hits');
    expect(response.status).toBe(503);
    expect(response.headers['content-type']).toMatch('application/problem+json');
    expect(response.headers['retry-after']).toBe('1');
    expect(response.text).not.toContain('127.0.0.1');
    // A check's result is cached for 1 s.
    await expectStatus('/health/ready', 503);
    expect((await get('/health/live')).status).toBe(200);
    await proxy.restore();
    await expectStatus('/hits', 200);
    await expectStatus('/health/ready', 200);
  });

  it('causes 503 within the time limits when the database stops responding', async () => {
    proxy.freeze();
    const responses = await Promise.all(Array.from({ length: 5 }, () => get('/hits')));
    expect(responses.map(({ status }) => status)).toEqual([503, 503, 503, 503, 503]);
    await proxy.restore();
    await expectStatus('/hits', 200);
  });

  it('causes 503 for a statement over its limit, and for a pool without a free connection', async () => {
    const [slow] = await Promise.all([get('/slow'), get('/slow'), get('/slow')]);
    expect(slow.status).toBe(503);
    await expectStatus('/hits', 200);
  });

  it('differs from a busy pool: the replica stays ready while all connections are in use', async () => {
    const dataSource = app.get(DataSource);
    let end = (): void => undefined;
    const isOver = new Promise<void>((resolve) => (end = resolve));
    let begun = 0;
    const busy = [1, 2].map(() =>
      inTransaction(dataSource, 'READ COMMITTED', async () => {
        begun += 1;
        await isOver;
      }),
    );
    try {
      await eventually(() => expect(begun).toBe(2));
      const { pool } = PoolDriver.of(dataSource);
      expect([pool.totalCount, pool.idleCount]).toEqual([2, 0]);
      await expectStatus('/health/ready', 200);
      await proxy.refuse();
      await expectStatus('/health/ready', 503);
    } finally {
      end();
      await Promise.allSettled(busy);
      await proxy.restore();
    }
    await expectStatus('/health/ready', 200);
  });

  it('is reported in a transaction, which releases its connection', async () => {
    const dataSource = await connectCounters(proxy.url, { poolSize: 1 });
    try {
      const cutOff = inTransaction(dataSource, 'REPEATABLE READ', async (manager) => {
        await manager.query('SELECT 1');
        proxy.cut();
        await eventually(() => expect(manager.queryRunner?.isReleased).toBe(true));
        await manager.query('SELECT 1');
      });
      const error: unknown = await cutOff.catch((each: unknown) => each);
      expect(isConnectionError(error)).toBe(true);
      expect(await dataSource.query('SELECT 1 AS one')).toEqual([{ one: 1 }]);
    } finally {
      await dataSource.destroy();
    }
  });

  it('removes a connection from the pool if its server stops responding in a transaction', async () => {
    const dataSource = await connectCounters(proxy.url, { poolSize: 1, statementTimeoutMs: 500 });
    try {
      const frozen = inTransaction(dataSource, 'READ COMMITTED', (manager) => {
        proxy.freeze();
        return manager.query('SELECT 1');
      });
      const error: unknown = await frozen.catch((each: unknown) => each);
      expect(isConnectionError(error)).toBe(true);
      expect(PoolDriver.of(dataSource).pool.totalCount).toBe(0);
      await proxy.restore();
      expect(await dataSource.query('SELECT 1 AS one')).toEqual([{ one: 1 }]);
    } finally {
      await dataSource.destroy();
    }
  });

  it('recognises an administrator ending the connection', async () => {
    const dataSource = await connectCounters(proxy.url, { poolSize: 1, applicationName: 'to-be-ended' });
    try {
      const sleeping = dataSource.query('SELECT pg_sleep(5)').catch((each: unknown) => each);
      await eventually(async () => {
        const ended = await database.querySuperuser(
          "SELECT pg_terminate_backend(pid) AS ended FROM pg_stat_activity WHERE application_name = 'to-be-ended' AND state = 'active'",
        );
        expect(ended).toEqual([{ ended: true }]);
      });
      expect(isConnectionError(await sleeping)).toBe(true);
    } finally {
      await dataSource.destroy();
    }
  });

  it('is survived by retries if it is shorter than their deadline', async () => {
    await proxy.refuse();
    const connecting = withConnectionRetry(() => connectCounters(proxy.url), { delaysMs: [10, 100, 1_000] });
    await proxy.restore();
    const dataSource = await connecting;
    await dataSource.destroy();

    await proxy.refuse();
    const hopeless = withConnectionRetry(() => connectCounters(proxy.url), { deadlineMs: 200 });
    await expect(hopeless).rejects.toThrow(DatabaseUnavailableError);
    await proxy.restore();
  });

  it('does not retry a wrong password', async () => {
    const url = new URL(database.url);
    url.password = 'wrong';
    let attempts = 0;
    const connecting = withConnectionRetry(() => {
      attempts += 1;
      return connectCounters(url.toString());
    });
    await expect(connecting).rejects.toMatchObject({ code: '28P01' });
    expect(attempts).toBe(1);
  });
});
