import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Writes a file atomically, unless it already has this content. A program may start from it at any time, and
 * reads either the old or the new file, never a part.
 */
export async function writeWhole(path: string, content: Uint8Array): Promise<void> {
  if (existsSync(path) && (await readFile(path)).equals(content)) return;
  await mkdir(dirname(path), { recursive: true });
  const unfinished = `${path}.${process.pid}`;
  await writeFile(unfinished, content);
  await rename(unfinished, path);
}
