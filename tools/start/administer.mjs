// `npm run auth:admin`, `npm run task:admin`: see administer.ts.
import { ensureRuntime, runProgram } from '#platform/install.mjs';

ensureRuntime();
runProgram('tools/start/administer.ts', process.argv.slice(2));
