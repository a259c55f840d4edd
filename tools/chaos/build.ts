import { spawnSync } from 'node:child_process';
import { FriendlyError } from '#platform/friendly-error.ts';
import { PROJECT_ROOTS } from '#platform/programs.ts';

/** Bundles services and neighbours into `dist`, as the build does. @throws {FriendlyError} with what the bundler wrote */
export function build(workspace: string): void {
  const args = ['tools/build/bundle.ts', ...PROJECT_ROOTS];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: workspace, encoding: 'utf8' });
  if (status !== 0) throw new FriendlyError(`The build failed:\n${stdout}${stderr}`);
}
