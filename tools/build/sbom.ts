import { existsSync } from 'node:fs';
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Bill of materials of a bundle of packages, written beside it for scanners. In an image it also lists the
 * packages in `node_modules`.
 */
export const SBOM_FILE = 'sbom.cdx.json';

/** The part of a lock file that a bill of materials is made from. */
export interface Lock {
  readonly packages: Readonly<
    Record<string, { readonly version?: string; readonly license?: string; readonly integrity?: string }>
  >;
}

interface Component {
  readonly type: 'library';
  readonly 'bom-ref': string;
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly licenses?: readonly { readonly expression: string }[];
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
}

/** A bill of materials in CycloneDX. */
export interface Sbom {
  readonly bomFormat: 'CycloneDX';
  readonly specVersion: '1.5';
  readonly version: 1;
  readonly metadata: {
    readonly component: { readonly type: 'application'; readonly name: string; readonly version: string };
  };
  readonly components: readonly Component[];
}

/** Returns a bill of materials without components. */
export function emptySbom(name: string, version: string): Sbom {
  const component = { type: 'application', name, version } as const;
  return { bomFormat: 'CycloneDX', specVersion: '1.5', version: 1, metadata: { component }, components: [] };
}

/**
 * Returns the bill of materials with more packages. A version of a package is one component, however many
 * folders hold it.
 * @param folders as the lock file names them, `node_modules/pg`; a path before `node_modules` is ignored,
 * because `node_modules` may be a symbolic link
 * @throws {Error} for a folder that the lock file does not name
 */
export function withPackages(sbom: Sbom, lock: Lock, folders: Iterable<string>): Sbom {
  const components = new Map(sbom.components.map((component) => [component.purl, component]));
  for (const folder of folders) {
    const component = componentOf(folder, lock);
    components.set(component.purl, component);
  }
  const sorted = [...components.values()].sort((left, right) => (left.purl < right.purl ? -1 : 1));
  return { ...sbom, components: sorted };
}

function componentOf(folder: string, { packages }: Lock): Component {
  const locked = folder.slice(Math.max(0, folder.indexOf('node_modules/')));
  const { version, license, integrity } = packages[locked] ?? {};
  if (version === undefined) throw new Error(`the lock file does not name ${folder}`);
  const name = folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length);
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`;
  const [, bits, digest = ''] = /^sha(\d+)-(.+)$/.exec(integrity ?? '') ?? [];
  return {
    type: 'library',
    'bom-ref': purl,
    name,
    version,
    purl,
    ...(license === undefined ? {} : { licenses: [{ expression: license }] }),
    ...(bits === undefined
      ? {}
      : { hashes: [{ alg: `SHA-${bits}`, content: Buffer.from(digest, 'base64').toString('hex') }] }),
  };
}

/** Names, versions and licences of the packages in a bundle, written beside it. */
export const LICENCES_FILE = 'THIRD-PARTY.txt';

const LICENCE_FILE = /^(?:licen[cs]e|notice|copying)/i;
const PACKAGE_FOLDER = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/;

/**
 * Returns the folders of the packages that `files` belong to, sorted, each once. Skips files of no package.
 */
export function packageFolders(files: readonly string[]): string[] {
  return [...new Set(files.flatMap((file) => PACKAGE_FOLDER.exec(file) ?? []))].sort();
}

/**
 * Returns the licences of the packages whose files are bundled.
 * @param files below `root`, from esbuild's metafile
 */
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
