/**
 * Entry point of the scripts in package.json: `node tools/platform/launch.mjs [--install] <program>
 * [arguments]` runs a program of this workspace under the workspace's own Node. `--install` first installs
 * the packages of package-lock.json. Programs without it must not replace the packages of running processes:
 * for them, packages are installed only if the workspace has no working Node.
 */
import { ensureInstalled, ensureRuntime, runProgram } from './install.mjs';

const [first, ...rest] = process.argv.slice(2);
if (first === '--install') {
  ensureInstalled();
  runProgram(rest[0], rest.slice(1));
} else {
  ensureRuntime();
  runProgram(first, rest);
}
