import { execFile } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { FriendlyError } from '#platform/errors.ts';
import { SERVICES } from '#platform/programs.ts';
import { findOnPath } from '#platform/processes.ts';
import type { Engine } from './engine.ts';

const run = promisify(execFile);
const DEBIAN = 'bookworm';
const BOOTSTRAP_TIMEOUT_MS = 600_000;
const BUILD_TIMEOUT_MS = 1_200_000;
/** The user of the official image. */
const USER_ID = '1000';

/** The images: one for each service, and one for the neighbours. */
export const IMAGE_NAMES = [...SERVICES.map(({ name }) => name), 'neighbours'];

/** The tag of images built from this checkout. */
export const PRESENT = 'present';

/** The name of a built image. @param tag identifies the release */
export function imageOf(name: string, tag: string): string {
  return `localhost/ship/${name}:${tag}`;
}

/**
 * Returns the name of the base image: the wanted one, else the one in the Dockerfile, else, without a
 * registry, one that this function creates.
 * @throws {FriendlyError} if the wanted image is not available, or none can be created
 */
export async function findBaseImage(
  engine: Engine,
  {
    wanted,
    dockerfile,
    report,
  }: { wanted: string | null; dockerfile: string; report: (line: string) => void },
): Promise<string> {
  const named = wanted ?? /^ARG NODE_IMAGE=(.+)$/m.exec(readFileSync(dockerfile, 'utf8'))?.[1] ?? '';
  if (await engine.hasImage(named)) return named;
  if (wanted !== null)
    throw new FriendlyError(`The image ${wanted} does not exist here and cannot be fetched.`);
  const created = `localhost/ship-base:${process.versions.node}`;
  if (await engine.succeeds(['image', 'inspect', created])) return created;
  report(`${named} cannot be fetched: creating ${created} from Debian packages and this Node`);
  await makeBaseImage(engine, created);
  return created;
}

/**
 * Creates a base image: a minimal Debian, the Node and npm of this machine, and the user of the official
 * image.
 */
async function makeBaseImage(engine: Engine, image: string): Promise<void> {
  const npm = findNpm();
  if (findOnPath('debootstrap') === null || process.getuid?.() !== 0)
    throw new FriendlyError(
      'Without a registry the base image is created with debootstrap, as root: install it, or name an image with --base.',
    );
  const folder = mkdtempSync(join(tmpdir(), 'ship-base-'));
  const root = join(folder, 'root');
  const archive = join(folder, 'root.tar');
  try {
    await run('debootstrap', ['--variant=minbase', DEBIAN, root], {
      timeout: BOOTSTRAP_TIMEOUT_MS,
      maxBuffer: 2 ** 26,
    });
    for (const leftover of [
      'var/cache/apt',
      'var/lib/apt/lists',
      'usr/share/doc',
      'usr/share/locale',
      'usr/share/man',
    ])
      rmSync(join(root, leftover), { recursive: true, force: true });
    copyFileSync(process.execPath, join(root, 'usr/local/bin/node'));
    cpSync(npm, join(root, 'usr/local/lib/node_modules/npm'), { recursive: true, dereference: true });
    for (const program of ['npm', 'npx'])
      symlinkSync(`../lib/node_modules/npm/bin/${program}-cli.js`, join(root, 'usr/local/bin', program));
    await run('chroot', [root, 'useradd', '--create-home', '--uid', USER_ID, 'node']);
    await run('tar', ['--directory', root, '--create', '--file', archive, '.'], {
      timeout: BOOTSTRAP_TIMEOUT_MS,
    });
    const path = 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
    await engine.call(['import', '--change', path, archive, image], { timeoutMs: BOOTSTRAP_TIMEOUT_MS });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Returns the folder of the npm on the PATH. @throws {FriendlyError} if there is none */
function findNpm(): string {
  const program = findOnPath('npm');
  if (program === null) throw new FriendlyError('There is no npm on the PATH to put into the base image.');
  return dirname(dirname(realpathSync(program)));
}

export interface BuildOptions {
  /** The checkout to build. */
  readonly workspace: string;
  readonly base: string;
  readonly tag: string;
  /** Folder for temporary files that are mounted into a build. */
  readonly folder: string;
}

/** Builds one image with the Dockerfile of the checkout. */
export async function buildImage(engine: Engine, name: string, options: BuildOptions): Promise<void> {
  const { workspace, base, tag } = options;
  const what = name === 'neighbours' ? 'PROJECT_ROOT=tools/neighbours' : `APP=${name}`;
  const dockerfile = join(workspace, 'docker/Dockerfile');
  const target = ['--target', name === 'neighbours' ? 'neighbours' : 'service'];
  const args = [
    'build',
    '--network',
    'host',
    '--file',
    dockerfile,
    ...target,
    '--build-arg',
    `NODE_IMAGE=${base}`,
    '--build-arg',
    what,
    '--tag',
    imageOf(name, tag),
    ...(await registryFlags(engine, options.folder)),
    workspace,
  ];
  await engine.call(args, { timeoutMs: BUILD_TIMEOUT_MS });
}

/**
 * Flags that give a build the user's npm configuration and certificate authority, e.g. for a private
 * registry. Podman mounts them only during the build, so no layer contains them.
 */
async function registryFlags(engine: Engine, folder: string): Promise<string[]> {
  if (engine.name !== 'podman') return [];
  const flags = ['--format', 'docker', '--isolation', process.getuid?.() === 0 ? 'chroot' : 'rootless'];
  const { stdout } = await run('npm', ['config', 'get', 'userconfig'], { cwd: tmpdir() });
  const configuration = stdout.trim();
  if (existsSync(configuration)) flags.push('--volume', `${configuration}:/root/.npmrc:ro`);
  const authority = process.env['NODE_EXTRA_CA_CERTS'] ?? '';
  if (!existsSync(authority)) return flags;
  const file = join(folder, 'npmrc');
  writeFileSync(file, 'cafile=/tmp/authorities.crt\n');
  return [
    ...flags,
    '--volume',
    `${authority}:/tmp/authorities.crt:ro`,
    '--volume',
    `${file}:/usr/local/etc/npmrc:ro`,
  ];
}

/** Removes the built images. Their layers and the base image are kept for the next run. */
export async function removeImages(engine: Engine): Promise<void> {
  const format = ['--format', '{{.Repository}}:{{.Tag}}'];
  const names = await engine.call(['images', '--filter', 'reference=localhost/ship/*', ...format]);
  for (const name of names.split('\n').filter(Boolean)) await engine.succeeds(['rmi', '--force', name]);
}

/** Compares the bill of materials of an image with the packages in it, and prints their number. */
const COUNT_PACKAGES = `
const { readFileSync, readdirSync } = require('node:fs');
const { components } = JSON.parse(readFileSync(process.argv[1], 'utf8'));
const listed = components.map(({ name, version }) => name + ' ' + version).sort();
const bundled = [...readFileSync('THIRD-PARTY.txt', 'utf8').matchAll(/(?:^|-{80}\\n\\n)(\\S+ \\S+) \\(/g)].map(([, entry]) => entry);
const beside = readdirSync('node_modules')
  .flatMap((entry) => (entry.startsWith('@') ? readdirSync('node_modules/' + entry).map((name) => entry + '/' + name) : [entry]))
  .filter((name) => !name.startsWith('.'))
  .map((name) => name + ' ' + JSON.parse(readFileSync('node_modules/' + name + '/package.json', 'utf8')).version);
const present = [...new Set([...bundled, ...beside])].sort();
if (listed.join() !== present.join()) throw new Error('listed: ' + listed + '; present: ' + present);
console.log(listed.length);`;

/**
 * Counts the packages in an image.
 * @throws {FriendlyError} if its bill of materials does not list exactly these packages
 */
export async function countPackages(engine: Engine, name: string): Promise<number> {
  const image = imageOf(name, PRESENT);
  const format = '{{index .Config.Labels "property-platform.sbom"}}';
  const file = (await engine.call(['image', 'inspect', '--format', format, image])).trim();
  const spec = engine.specOf(`packages-${name}`, image, ['node', '--eval', COUNT_PACKAGES, file]);
  const printed = await engine.runToEnd(spec);
  await engine.remove([engine.container(spec.name)]);
  return Number(printed);
}

/** Returns the size of an image in bytes, and its user. */
export async function inspectImage(engine: Engine, image: string): Promise<{ bytes: number; user: string }> {
  const format = '{{.Size}} {{.Config.User}}';
  const [bytes = '', user = ''] = (await engine.call(['image', 'inspect', '--format', format, image]))
    .trim()
    .split(' ');
  return { bytes: Number(bytes), user };
}
