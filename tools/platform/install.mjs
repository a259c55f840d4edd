// Plain JavaScript on purpose: this runs with any Node from 20 on, before anything is installed.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { lock } from './install-lock.mjs';

const WORKSPACE = join(dirname(fileURLToPath(import.meta.url)), '../..');

const STAMP = join(WORKSPACE, 'node_modules/.installed-from');
const LOCK = join(WORKSPACE, '.installing');
const NODE = join(WORKSPACE, 'node_modules/.bin/node');
const RUNTIME_MAJOR = 24;

/** Short delays between npm's attempts. By default, npm is silent for two minutes without a network. */
const QUICK_RETRIES = ['--fetch-retry-mintimeout=1000', '--fetch-retry-maxtimeout=5000'];

/**
 * Installs the packages of package-lock.json, unless node_modules already holds exactly these. Exits with a
 * message on failure.
 */
export function ensureInstalled() {
  if (Number(process.versions.node.split('.')[0]) < 20) {
    fail(
      `Node ${process.versions.node} is too old: Node 20 or newer is needed to start (it installs Node ${RUNTIME_MAJOR} for itself).`,
    );
  }
  const wanted = describeInstallation();
  if (isInstalled(wanted)) return;
  const release = lock(LOCK, () =>
    console.log('▸ Waiting for another command of this checkout to install the packages …'),
  );
  if (!isInstalled(wanted)) install(wanted);
  release();
}

function isInstalled(wanted) {
  return existsSync(STAMP) && readFileSync(STAMP, 'utf8') === wanted && runtimeWorks();
}

function install(wanted) {
  const startedAt = performance.now();
  console.log('▸ Installing packages (npm ci; it needs a network or a full npm cache) …');
  const { status, error } = runNpmCi();
  if (error || status !== 0) {
    fail(
      `npm ci failed${error ? ` (${error.message})` : ` (exit code ${status})`}; its messages are above. ` +
        'Check that `npm ping` works (`npm config get registry` is the address), then run the same command again.',
    );
  }
  if (!runtimeWorks()) {
    fail(
      `npm ci succeeded, but ${NODE} is not Node ${RUNTIME_MAJOR}: its install script did not run. Check that npm's ignore-scripts is off.`,
    );
  }
  writeFileSync(STAMP, wanted);
  console.log(`✔ Packages installed (${((performance.now() - startedAt) / 1000).toFixed(1)} s)`);
}

/**
 * Installs packages only if the workspace has no working Node. For programs that need nothing but Node, and
 * must not replace the packages of running processes.
 */
export function ensureRuntime() {
  if (!runtimeWorks()) ensureInstalled();
}

function describeInstallation() {
  const lock = readFileSync(join(WORKSPACE, 'package-lock.json'));
  return `${process.platform}-${process.arch} ${createHash('sha256').update(lock).digest('hex')}\n`;
}

function runtimeWorks() {
  const { stdout } = spawnSync(NODE, ['--version'], { encoding: 'utf8' });
  return Boolean(stdout?.startsWith(`v${RUNTIME_MAJOR}.`));
}

function runNpmCi() {
  // Includes the development dependencies, among them the build, the embedded PostgreSQL and Node itself.
  const args = ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error', ...QUICK_RETRIES];
  const npm = process.env.npm_execpath;
  const options = { cwd: WORKSPACE, stdio: 'inherit' };
  return npm ? spawnSync(process.execPath, [npm, ...args], options) : spawnSync('npm', args, options);
}

/**
 * Runs a TypeScript program under the workspace's own Node, and exits with its exit code. Forwards SIGTERM
 * and SIGHUP to it, and sends it SIGTERM when npm has ended, e.g. because it was killed.
 */
export function runProgram(script, args) {
  const env = { ...process.env, PATH: `${dirname(NODE)}:${process.env.PATH ?? ''}` };
  const child = spawn(NODE, [join(WORKSPACE, script), ...args], { env, stdio: 'inherit' });
  // Ctrl-C reaches the child directly: it belongs to the same process group of the terminal.
  process.on('SIGINT', () => {});
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  const npm = findNpm();
  const watch = setInterval(() => {
    if (!isAlive(npm)) child.kill('SIGTERM');
  }, 500);
  watch.unref();
  child.once('error', (error) => fail(error.message));
  child.once('exit', (code, signal) => {
    clearInterval(watch);
    process.exitCode = code ?? (signal === 'SIGINT' ? 130 : 143);
  });
}

/**
 * Returns the pid of the npm that runs this process: the parent, or the parent of the shell in between.
 * Without npm, returns this process's own pid.
 */
function findNpm() {
  if (!process.env.npm_lifecycle_event) return process.pid;
  try {
    const stat = readFileSync(`/proc/${process.ppid}/stat`, 'utf8');
    const [, command, rest] = /\((.*)\) (.*)/s.exec(stat) ?? [];
    return /^(ba|da)?sh$/.test(command) ? Number(rest.split(' ')[1]) : process.ppid;
  } catch {
    return process.ppid; // a system without /proc
  }
}

function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}

function fail(message) {
  console.error(`✘ ${message}`);
  process.exit(1);
}
