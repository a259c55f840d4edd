// `npm run stop`: see stop.ts.
import { ensureInstalled, runProgram } from '#infrastructure/install.mjs';

ensureInstalled();
runProgram('tools/start/stop.ts', process.argv.slice(2));
