import { existsSync } from 'node:fs';
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** Beside a bundle of packages: what is in it, in which version, and under which licence. */
export const LICENCES_FILE = 'THIRD-PARTY.txt';

const LICENCE_FILE = /^(?:licen[cs]e|notice|copying)/i;
const PACKAGE_FOLDER = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/;

/** Folders of the packages that files belong to, each once, in order; files of no package are passed over. */
export function packageFolders(files: readonly string[]): string[] {
  return [...new Set(files.flatMap((file) => PACKAGE_FOLDER.exec(file) ?? []))].sort();
}

/** The licences of the packages whose files are bundled. @param files below `root`, as esbuild lists them */
export async function thirdPartyLicences(root: string, files: readonly string[]): Promise<string> {
  const entries = await Promise.all(packageFolders(files).map((folder) => licenceEntry(join(root, folder))));
  return entries.join(`\n${'-'.repeat(80)}\n\n`);
}

async function licenceEntry(folder: string): Promise<string> {
  const manifest = join(folder, 'package.json');
  if (!existsSync(manifest)) throw new Error(`${folder} has no package.json`);
  const { name, version, license } = JSON.parse(await readFile(manifest, 'utf8')) as Record<string, unknown>;
  const names = (await readdir(folder)).filter((file) => LICENCE_FILE.test(file)).sort();
  const texts = await Promise.all(names.map((file) => readFile(join(folder, file), 'utf8')));
  return [`${String(name)} ${String(version)} (${String(license)})\n`, ...texts].join('\n');
}
