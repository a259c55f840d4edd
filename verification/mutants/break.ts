import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { WORKSPACE } from '#platform/state-folder.ts';
import type { Mutant } from './mutant.ts';

/**
 * Replaces the original code of a mutant in the text of a bundle.
 * @throws {Error} if the original code does not occur exactly once, because the product has changed
 */
export function breakText(text: string, { name, bundle, original, mistake }: Omit<Mutant, 'rounds'>): string {
  const parts = text.split(original);
  if (parts.length !== 2)
    throw new Error(`${name}: the code to break occurs ${parts.length - 1} times in ${bundle}`);
  return parts.join(mistake);
}

/**
 * Copies the build and plants the mutants in the copy.
 * @returns the folder of the copy, relative to the workspace
 * @throws {Error} like `breakText`
 */
export function breakCopy(mutants: readonly Mutant[]): string {
  const folder = copyBuild('broken');
  for (const mutant of mutants) {
    const file = join(WORKSPACE, folder, mutant.bundle);
    writeFileSync(file, breakText(readFileSync(file, 'utf8'), mutant));
  }
  return folder;
}

/** Copies the build. @returns the folder of the copy, relative to the workspace */
export function copyBuild(name: string): string {
  const folder = join('dist/mutants', name);
  const target = join(WORKSPACE, folder);
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  for (const part of ['apps', 'tools'])
    cpSync(join(WORKSPACE, 'dist', part), join(target, part), { recursive: true });
  return folder;
}
