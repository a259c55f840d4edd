import { emptySbom, withPackages } from './sbom.ts';

describe('withPackages', () => {
  const lock = {
    packages: {
      'node_modules/@nestjs/core': { version: '11.0.0', license: 'MIT', integrity: 'sha512-AAEC' },
      'node_modules/pg': { version: '8.0.0' },
      'node_modules/other/node_modules/pg': { version: '8.0.0' },
      'node_modules/old/node_modules/pg': { version: '7.0.0' },
    },
  };
  const empty = emptySbom('auth-service', '1.2.3');

  it('names each package in each version once, in order', () => {
    const { metadata, components } = withPackages(empty, lock, Object.keys(lock.packages));
    expect(metadata.component).toEqual({ type: 'application', name: 'auth-service', version: '1.2.3' });
    expect(components.map(({ purl }) => purl)).toEqual([
      'pkg:npm/%40nestjs/core@11.0.0',
      'pkg:npm/pg@7.0.0',
      'pkg:npm/pg@8.0.0',
    ]);
  });

  it('takes licence and hash from the lock file', () => {
    expect(withPackages(empty, lock, ['node_modules/@nestjs/core']).components).toEqual([
      {
        type: 'library',
        'bom-ref': 'pkg:npm/%40nestjs/core@11.0.0',
        name: '@nestjs/core',
        version: '11.0.0',
        purl: 'pkg:npm/%40nestjs/core@11.0.0',
        licenses: [{ expression: 'MIT' }],
        hashes: [{ alg: 'SHA-512', content: '000102' }],
      },
    ]);
  });

  it('finds a package behind a symbolic link to node_modules', () => {
    const { components } = withPackages(empty, lock, ['../elsewhere/node_modules/pg']);
    expect(components.map(({ purl }) => purl)).toEqual(['pkg:npm/pg@8.0.0']);
  });

  it('adds to the components of the bill, and refuses a package that is not in the lock file', () => {
    const first = withPackages(empty, lock, ['node_modules/pg']);
    expect(withPackages(first, lock, ['node_modules/@nestjs/core']).components).toHaveLength(2);
    expect(() => withPackages(empty, lock, ['node_modules/unknown'])).toThrow('node_modules/unknown');
  });
});
