import { join } from 'node:path';
import { packageFolders, thirdPartyLicences } from './sbom.ts';

const WORKSPACE = join(__dirname, '../..');

describe('packageFolders', () => {
  it('names each package once, nested packages too', () => {
    const files = [
      'packages.js',
      'node_modules/pg/lib/index.js',
      'node_modules/pg/lib/client.js',
      'node_modules/@nestjs/core/index.js',
      'node_modules/a/node_modules/@b/c/index.js',
    ];
    expect(packageFolders(files)).toEqual([
      'node_modules/@nestjs/core',
      'node_modules/a/node_modules/@b/c',
      'node_modules/pg',
    ]);
  });
});

describe('thirdPartyLicences', () => {
  it('holds name, version and the whole licence', async () => {
    const text = await thirdPartyLicences(WORKSPACE, ['node_modules/reflect-metadata/Reflect.js']);
    expect(text).toMatch(/^reflect-metadata \d+\.\d+\.\d+ \(Apache-2\.0\)\n/);
    expect(text).toContain('TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION');
  });
});
