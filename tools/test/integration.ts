/**
 * Runs the integration tests of a project: `node tools/test/integration.ts <folder> [flags of Jest]`. Without
 * flags it runs all of them, in suites. With flags, e.g. a pattern, Jest gets the test files themselves.
 */
import { spawnSync } from 'node:child_process';
import { globSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { WORKSPACE } from '#platform/state-folder.ts';
import { planSuites, suiteSource } from './suites.ts';

const MAX_WORKERS = 2;

function main([folder = '.', ...flags]: readonly string[]): void {
  const project = basename(folder);
  const roots = flags.length === 0 ? writeSuites(project, folder) : [`--roots=${folder}`];
  const { status } = spawnSync(
    join(WORKSPACE, 'node_modules/.bin/jest'),
    [
      '--config=jest.integration.cjs',
      '--json',
      `--outputFile=test-results/${project}.integration.json`,
      '--passWithNoTests',
      `--maxWorkers=${MAX_WORKERS}`,
      ...roots,
      ...flags,
    ],
    { cwd: WORKSPACE, stdio: 'inherit' },
  );
  process.exitCode = status ?? 1;
}

/** Writes the suites of a project, and returns the flags that have Jest run them. */
function writeSuites(project: string, folder: string): string[] {
  const suites = join(WORKSPACE, 'test-results/suites', project);
  rmSync(suites, { recursive: true, force: true });
  mkdirSync(suites, { recursive: true });
  const files = globSync(`${folder}/**/*.integration-spec.ts`, { cwd: WORKSPACE });
  for (const [index, some] of planSuites(files).entries()) {
    const name = `${String(index + 1).padStart(2, '0')}.suite.ts`;
    writeFileSync(join(suites, name), suiteSource(some, relative(suites, WORKSPACE)));
  }
  return [`--roots=${suites}`, '--testMatch=**/*.suite.ts', '--testSequencer=./tools/test/by-name.cjs'];
}

main(process.argv.slice(2));
