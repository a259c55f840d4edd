// `npm run leak`: see leak/main.ts.
import { ensureRuntime, runProgram } from '#platform/install.mjs';

ensureRuntime();
runProgram('tools/fuzz/leak/main.ts', process.argv.slice(2));
