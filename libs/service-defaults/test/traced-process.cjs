/**
 * Runs the suites' traced service as a separate process. The exporter cannot run inside Jest, which has no
 * `import()`.
 */
require('./run-typescript.cjs');
const { runService } = require('../src/index.ts');
const { tracedDefinition } = require('./traced-app.ts');

process.on('exit', () => {
  // prom-client loads OpenTelemetry's API, which is small.
  const isLoaded = Object.keys(require.cache).some((path) => path.includes('@opentelemetry/sdk'));
  process.stdout.write(`the SDK ${isLoaded ? 'was' : 'was not'} loaded\n`);
});

void runService('traced', () => tracedDefinition(process.env));
