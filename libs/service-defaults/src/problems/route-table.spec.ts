import { RouteTable } from './route-table';

function table(): RouteTable {
  const routes = new RouteTable();
  routes.add({ url: '/settings', method: 'GET' });
  routes.add({ url: '/subsystems/:name/settings/:setting', method: ['PUT', 'GET'] });
  routes.add({ url: '/subsystems/:name/settings/:setting', method: 'DELETE' });
  routes.add({ url: '/files/*', method: 'GET' });
  routes.add({ url: '/a.b', method: 'GET' });
  return routes;
}

describe('RouteTable', () => {
  it.each([
    ['/settings', ['GET']],
    ['/Settings/?page=1', ['GET']],
    ['/subsystems/a/settings/b', ['DELETE', 'GET', 'PUT']],
    ['/subsystems/a%2Fb/settings/c', ['DELETE', 'GET', 'PUT']],
    ['/files/a/b/c', ['GET']],
    ['/subsystems/a/settings', []],
    ['/subsystems//settings/b', []],
    ['/axb', []],
    ['/', []],
  ])('lists the methods of %s', (target, methods) => {
    expect(table().methodsOf(target)).toEqual(methods);
  });
});
