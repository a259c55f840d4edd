import type { FastifyInstance, RouteOptions } from 'fastify';
import { pathOf } from '../logging/log-safe';

interface Route {
  pattern: RegExp;
  methods: readonly string[];
}

/** The methods that have a route at an address; used only after routing has failed. */
export class RouteTable {
  private readonly routes: Route[] = [];

  /** Records the routes that are added after this call. */
  watch(instance: FastifyInstance): void {
    instance.addHook('onRoute', (route) => this.add(route));
  }

  add(route: Pick<RouteOptions, 'url' | 'method'>): void {
    const methods = typeof route.method === 'string' ? [route.method] : route.method;
    this.routes.push({ pattern: patternOf(route.url), methods });
  }

  /** Returns the methods with a route at the request target, sorted; empty if there is no route. */
  methodsOf(target: string): string[] {
    const path = withoutTrailingSlash(pathOf(target));
    const found = this.routes.filter(({ pattern }) => pattern.test(path)).flatMap(({ methods }) => methods);
    return [...new Set(found)].sort();
  }
}

/**
 * Returns a pattern that matches as the router does: case-insensitive, with one path segment per parameter.
 */
function patternOf(url: string): RegExp {
  const source = withoutTrailingSlash(url)
    .split('/')
    .map((segment) =>
      segment
        .replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
        .replace(/:\w+/g, '[^/]+')
        .replace('\\*', '.*'),
    )
    .join('/');
  return new RegExp(`^${source}$`, 'i');
}

function withoutTrailingSlash(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}
