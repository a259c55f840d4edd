import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Writes a file unless it is there with this content. Programs may be started from it at any time: they find
 *  the old one or the new one, never a part. */
export async function writeWhole(path: string, content: Uint8Array): Promise<void> {
  if (existsSync(path) && (await readFile(path)).equals(content)) return;
  await mkdir(dirname(path), { recursive: true });
  const unfinished = `${path}.${process.pid}`;
  await writeFile(unfinished, content);
  await rename(unfinished, path);
}
