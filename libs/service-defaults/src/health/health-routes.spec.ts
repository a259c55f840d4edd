import { Logger } from '@nestjs/common';
import fastify from 'fastify';
import type { FastifyInstance, LightMyRequestResponse as Response } from 'fastify';
import { HealthRegistry, addHealthRoutes } from './health';

describe('GET /health/ready', () => {
  let instance: FastifyInstance;

  // Health logs the reason of each failed check.
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

  it('is 503 while any check fails', async () => {
    const response = await ready();
    expect(response.statusCode).toBe(503);
    expect(response.headers).toMatchObject({ 'retry-after': '1', 'cache-control': 'no-store' });
    expect(response.json()).toMatchObject({ checks: { database: 'ok', 'bus-main': 'failed' } });
  });

  it('skips one or several excluded checks', async () => {
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
  ])('refuses an unknown check: %p', async (name) => {
    const response = await ready(`?exclude=${name}`);
    expect(response.statusCode).toBe(400);
    expect(response.headers).toMatchObject({
      'content-type': expect.stringContaining('application/problem+json'),
      'cache-control': 'no-store',
    });
    expect(response.json()).toMatchObject({
      instance: '/health/ready',
      errors: { exclude: ['Must be one of: database, bus-main, bus-scheduling.'] },
    });
  });
});
