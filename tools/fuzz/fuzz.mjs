// `npm run fuzz`: see main.ts.
import { ensureRuntime, runProgram } from '#platform/install.mjs';

ensureRuntime();
runProgram('tools/fuzz/main.ts', process.argv.slice(2));
