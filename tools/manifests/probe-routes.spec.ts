import { join } from 'node:path';
import fastify from 'fastify';
import type { FastifyInstance } from 'fastify';
import { containers, workloads } from './kubernetes-object.ts';
import { renderAll } from './renderings.ts';

// Loading the routes compiles them first.
jest.setTimeout(60_000);

const WORKSPACE = join(__dirname, '../..');
const CONTAINERS = renderAll(WORKSPACE).flatMap(({ objects }) =>
  workloads(objects).flatMap(({ pod }) => containers(pod)),
);

describe('the probes', () => {
  let instance: FastifyInstance;

  beforeAll(async () => {
    const module = join(WORKSPACE, 'libs/service-defaults/src/health/health.ts');
    const { addHealthRoutes } = (await import(module)) as {
      addHealthRoutes: (instance: FastifyInstance, registry: object) => void;
    };
    instance = fastify();
    addHealthRoutes(instance, {});
  });

  it.each([
    ['startupProbe', '/health/startup'],
    ['readinessProbe', '/health/ready'],
    ['livenessProbe', '/health/live'],
  ] as const)('ask the route made for each of them: %s', (probe, url) => {
    const asked = CONTAINERS.flatMap((container) => container[probe]?.httpGet?.path ?? []);
    expect([...new Set(asked.map((path) => path.split('?')[0]))]).toEqual([url]);
    expect(instance.hasRoute({ method: 'GET', url })).toBe(true);
  });

  it.each([
    ['auth-service', []],
    ['settings-service', []],
    // It accepts schedules without the broker; the integration tests ask this very path while the broker is
    // away.
    ['task-service', ['bus-main', 'bus-scheduling']],
  ])('do not keep requests from %s for want of %p', (name, excluded) => {
    const paths = CONTAINERS.filter((container) => container.name === name).flatMap(
      ({ readinessProbe }) => readinessProbe?.httpGet?.path ?? [],
    );
    expect(paths.length).toBeGreaterThan(0);
    for (const path of paths) {
      const { searchParams } = new URL(path, 'http://pod');
      expect([...searchParams]).toEqual(excluded.map((check) => ['exclude', check]));
    }
  });

  it('would be told from a route that there is not', () => {
    expect(instance.hasRoute({ method: 'GET', url: '/health' })).toBe(false);
  });
});
