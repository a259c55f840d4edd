// `npm start`: see main.ts. This part only makes sure that there is something to run it with.
import { ensureInstalled, runProgram } from '#platform/install.mjs';

ensureInstalled();
runProgram('tools/start/main.ts', process.argv.slice(2));
