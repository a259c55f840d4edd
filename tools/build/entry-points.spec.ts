import { bundlesOf, libraryPaths } from './swc-plugin.ts';

describe('bundlesOf', () => {
  it('names each bundle after its entry point', () => {
    const project = { name: 'auth', metadata: { entryPoints: ['src/main.ts', 'src/migrate.ts'] } };
    expect(bundlesOf('apps/auth', project)).toEqual({
      main: './apps/auth/src/main.ts',
      migrate: './apps/auth/src/migrate.ts',
    });
  });

  it('defaults to src/main.ts', () => {
    expect(bundlesOf('apps/x', { name: 'x' })).toEqual({ main: './apps/x/src/main.ts' });
  });

  it('refuses two entry points with one name', () => {
    const project = { name: 'x', metadata: { entryPoints: ['src/main.ts', 'src/other/main.ts'] } };
    expect(() => bundlesOf('apps/x', project)).toThrow('two entry points are called main');
  });
});

describe('libraryPaths', () => {
  it('maps an import name to its one source file', () => {
    expect(libraryPaths({ '@platform/time': ['libs/time/src/index.ts'] }).get('@platform/time')).toBe(
      'libs/time/src/index.ts',
    );
  });
});
