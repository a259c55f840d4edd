import { Logger } from '@nestjs/common';
import fastify from 'fastify';
import type { FastifyInstance, LightMyRequestResponse as Response } from 'fastify';
import { HealthRegistry, addHealthRoutes } from './health';

describe('GET /health/ready', () => {
  let instance: FastifyInstance;

  // It says why a check failed.
  beforeAll(() => Logger.overrideLogger(false));
  afterAll(() => Logger.overrideLogger(['warn']));

  beforeEach(() => {
    const registry = new HealthRegistry();
    registry.addStartupCheck({ name: 'migrations', check: () => Promise.resolve() });
    registry.addReadinessCheck({ name: 'database', check: () => Promise.resolve() });
    registry.addReadinessCheck({ name: 'bus-main', check: () => Promise.reject(new Error('down')) });
    registry.addReadinessCheck({ name: 'bus-scheduling', check: () => Promise.reject(new Error('down')) });
    instance = fastify();
    addHealthRoutes(instance, registry);
  });

  const ready = (query = ''): Promise<Response> => instance.inject(`/health/ready${query}`);

  it('is 503 while anything that is needed is away', async () => {
    const answer = await ready();
    expect(answer.statusCode).toBe(503);
    expect(answer.headers).toMatchObject({ 'retry-after': '1', 'cache-control': 'no-store' });
    expect(answer.json()).toMatchObject({ checks: { database: 'ok', 'bus-main': 'failed' } });
  });

  it('leaves out the checks that it is told to, one or several', async () => {
    const both = await ready('?exclude=bus-main&exclude=bus-scheduling&exclude=bus-main');
    expect(both.statusCode).toBe(200);
    const checks = { migrations: 'ok', database: 'ok', 'bus-main': 'excluded', 'bus-scheduling': 'excluded' };
    expect(both.json()).toEqual({ status: 'ok', checks });
    const one = await ready('?exclude=bus-main');
    expect(one.statusCode).toBe(503);
    expect(one.json()).toMatchObject({
      instance: '/health/ready',
      checks: { 'bus-main': 'excluded', 'bus-scheduling': 'failed' },
    });
  });

  it.each([
    'bus-mian',
    'migrations',
    'shutdown',
    'live',
    '',
    'bus-main&exclude=x',
    'bus-main,bus-scheduling',
  ])('refuses a check that there is not: %p', async (name) => {
    const answer = await ready(`?exclude=${name}`);
    expect(answer.statusCode).toBe(400);
    expect(answer.headers).toMatchObject({
      'content-type': expect.stringContaining('application/problem+json'),
      'cache-control': 'no-store',
    });
    expect(answer.json()).toMatchObject({
      instance: '/health/ready',
      errors: { exclude: ['Must be one of: database, bus-main, bus-scheduling.'] },
    });
  });
});
