import { isNeedless, packagesToKeep } from './pruning.ts';

describe('isNeedless', () => {
  it.each([
    'zod/index.d.cts',
    'pino/docs/api.md',
    'pg/lib/client.js.map',
    'typeorm/browser',
    'rxjs/dist/esm5',
  ])('drops %s', (path) => expect(isNeedless(path)).toBe(true));

  it.each([
    'zod/index.cjs',
    'typeorm/index.js',
    'rxjs/dist/cjs',
    'pg/package.json',
    'luxon/LICENSE.md',
    '@node-rs/argon2-linux-x64-gnu/argon2.linux-x64-gnu.node',
    'swagger-ui-dist/swagger-ui.css',
  ])('keeps %s', (path) => expect(isNeedless(path)).toBe(false));
});

describe('packagesToKeep', () => {
  const installed: Record<string, object> = {
    native: {
      dependencies: { 'node-gyp': '1' },
      optionalDependencies: { 'native-linux': '1', 'native-darwin': '1' },
    },
    'native-linux': {},
    'node-gyp': {},
    express: {},
  };

  it('keeps external packages and their binaries for this platform, and nothing else', () => {
    const needed = packagesToKeep(['native', 'not-installed'], (name) => installed[name]);
    expect([...needed]).toEqual(['native', 'native-linux']);
  });
});
