import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { RunAs } from '#platform/run-as.ts';
import { type Variables, WORKSPACE } from '#platform/state-folder.ts';

const run = promisify(execFile);
const PAGE = join(WORKSPACE, 'docs/operations.md');
const HEADING = '### To an instant';

/** The commands of the page's section, block by block as it has them. @throws {Error} when there are not three blocks */
export function documentedCommands(page = readFileSync(PAGE, 'utf8')): {
  archive: string;
  backUp: string;
  restore: string;
} {
  const [section = ''] = (page.split(`\n${HEADING}\n`)[1] ?? '').split(/\n##+ /);
  const blocks = [...section.matchAll(/^```sh\n(.+?)^```$/gms)].map(([, commands = '']) => commands);
  const [archive, backUp, restore, ...others] = blocks;
  if (archive === undefined || backUp === undefined || restore === undefined || others.length > 0)
    throw new Error(`${PAGE} has ${blocks.length} blocks of commands under "${HEADING}", not three`);
  return { archive, backUp, restore };
}

/** Runs commands in a shell that ends at the first failure. @throws {Error} with what they wrote */
export async function runCommands(
  commands: string,
  variables: Variables,
  runAs: RunAs | null,
): Promise<void> {
  const env = { PATH: process.env['PATH'], LC_ALL: 'C', ...variables };
  await run('sh', ['-ec', commands], { env, cwd: '/', ...runAs });
}
