/** Makes a separate process run TypeScript, compiled as Jest compiles it. */
const { readFileSync } = require('node:fs');
const Module = require('node:module');
const { join } = require('node:path');
const { transformSync } = require('@swc/core');
require('reflect-metadata');

const workspace = join(__dirname, '../../..');
const swc = JSON.parse(readFileSync(join(workspace, '.swcrc'), 'utf8'));

Module._extensions['.ts'] = (module, filename) => {
  const source = readFileSync(filename, 'utf8');
  const { code } = transformSync(source, {
    ...swc,
    swcrc: false,
    sourceMaps: 'inline',
    filename,
    module: { type: 'commonjs' },
  });
  module._compile(code, filename);
};
const resolve = Module._resolveFilename;
Module._resolveFilename = function resolveWorkspace(request, ...rest) {
  const [, lib] = /^@platform\/([^/]+)$/.exec(request) ?? [];
  return resolve.call(
    this,
    lib === undefined ? request : join(workspace, 'libs', lib, 'src/index.ts'),
    ...rest,
  );
};
