/** Runs the small application of these tests as a process of its own, compiled the way Jest compiles it. */
const { readFileSync } = require('node:fs');
const Module = require('node:module');
const { dirname, join } = require('node:path');
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

const { runService } = require('../src/index.ts');
const { Story, stoppingConfig, stoppingDefinition } = require('./stopping-app.ts');

void runService(() => ({
  ...stoppingDefinition,
  config: stoppingConfig(process.env),
  configure(app) {
    const story = app.get(Story);
    const { push } = story.events;
    story.events.push = (event) => {
      process.stdout.write(`${JSON.stringify({ msg: event })}\n`);
      // Held until the process has been told to stop.
      if (event === 'begun') process.once('SIGTERM', story.release).once('SIGINT', story.release);
      return push.call(story.events, event);
    };
  },
}));
