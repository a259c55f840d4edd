import { join } from 'node:path';
import fastify from 'fastify';
import type { FastifyInstance } from 'fastify';
import { containers, workloads } from './kubernetes-object.ts';
import { renderAll } from './renderings.ts';

// Loading the routes compiles them first, which is slow.
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
  ] as const)('ask their own route: %s', (probe, url) => {
    const asked = CONTAINERS.flatMap((container) => container[probe]?.httpGet?.path ?? []);
    expect([...new Set(asked.map((path) => path.split('?')[0]))]).toEqual([url]);
    expect(instance.hasRoute({ method: 'GET', url })).toBe(true);
  });

  it.each([
    ['auth-service', []],
    ['settings-service', []],
    // task-service accepts schedules without the broker. The integration tests request this path while the
    // broker is down.
    ['task-service', ['bus-main', 'bus-scheduling']],
  ])('let requests reach %s without %p', (name, excluded) => {
    const paths = CONTAINERS.filter((container) => container.name === name).flatMap(
      ({ readinessProbe }) => readinessProbe?.httpGet?.path ?? [],
    );
    expect(paths.length).toBeGreaterThan(0);
    for (const path of paths) {
      const { searchParams } = new URL(path, 'http://pod');
      expect([...searchParams]).toEqual(excluded.map((check) => ['exclude', check]));
    }
  });

  it('would fail for a route that does not exist', () => {
    expect(instance.hasRoute({ method: 'GET', url: '/health' })).toBe(false);
  });
});
