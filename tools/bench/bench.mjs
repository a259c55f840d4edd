// `npm run bench`: see main.ts.
import { ensureRuntime, runProgram } from '#platform/install.mjs';

ensureRuntime();
runProgram('tools/bench/main.ts', process.argv.slice(2));
