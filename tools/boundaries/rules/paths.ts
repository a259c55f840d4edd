import { relative, sep } from 'node:path';

/** Path of the linted file from the workspace root, with forward slashes. */
export function workspacePath(context: { filename: string; cwd: string }): string {
  return relative(context.cwd, context.filename).split(sep).join('/');
}

/** True for specs and everything under a project's `test/` folder. */
export function isTestFile(path: string): boolean {
  return /\.(spec|integration-spec|e2e-spec)\.ts$/.test(path) || /(^|\/)test\//.test(path);
}
