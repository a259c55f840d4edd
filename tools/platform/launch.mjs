/**
 * What the scripts of package.json begin with: `node tools/platform/launch.mjs <program> [arguments]` runs a
 * program of this workspace under the workspace's own Node. `--install` before the program installs first
 * what package-lock.json says. Programs without it must not replace the packages of processes that are
 * running: for them, packages are installed only when there is no runtime at all.
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
