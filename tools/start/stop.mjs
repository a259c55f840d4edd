// `npm run stop`: see stop.ts.
import { ensureRuntime, runProgram } from '#platform/install.mjs';

ensureRuntime();
runProgram('tools/start/stop.ts', process.argv.slice(2));
