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

/** What is built: an app each, and the neighbours. */
export const IMAGE_NAMES = [...SERVICES.map(({ name }) => name), 'neighbours'];

/** The tag of what this checkout holds. */
export const PRESENT = 'present';

/** A built image's name in the engine. @param tag which release it holds */
export function imageOf(name: string, tag: string): string {
  return `localhost/ship/${name}:${tag}`;
}

/**
 * The base image of a Dockerfile: the one that was asked for, the one that it names, or, where no registry
 * answers, one made here.
 * @throws {FriendlyError} when the one that was asked for is nowhere, or none can be made
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
  if (wanted !== null) throw new FriendlyError(`There is no image ${wanted}, and none could be fetched.`);
  const made = `localhost/ship-base:${process.versions.node}`;
  if (await engine.succeeds(['image', 'inspect', made])) return made;
  report(`${named} cannot be fetched: making ${made} from Debian packages and this Node`);
  await makeBaseImage(engine, made);
  return made;
}

/** Debian's smallest system, the workspace's Node, npm, and the user of the official image. */
async function makeBaseImage(engine: Engine, image: string): Promise<void> {
  const npm = findNpm();
  if (findOnPath('debootstrap') === null || process.getuid?.() !== 0)
    throw new FriendlyError(
      'Without a registry the base image is made by debootstrap, as root: install it, or name one with --base.',
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

/** The folder of the npm that installs this workspace. */
function findNpm(): string {
  const program = findOnPath('npm');
  if (program === null) throw new FriendlyError('There is no npm on the PATH to put into the base image.');
  return dirname(dirname(realpathSync(program)));
}

export interface BuildOptions {
  /** The checkout that is built. */
  readonly workspace: string;
  readonly base: string;
  readonly tag: string;
  /** For files that are mounted into a build and removed afterwards. */
  readonly folder: string;
}

/** Builds one image from the checkout's own Dockerfile. */
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
 * A registry of the user's own and its authority, for the time of the build only: podman mounts them, and no
 * layer keeps them.
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

/** Removes what was built. Its layers and the base image stay for the next run. */
export async function removeImages(engine: Engine): Promise<void> {
  const format = ['--format', '{{.Repository}}:{{.Tag}}'];
  const names = await engine.call(['images', '--filter', 'reference=localhost/ship/*', ...format]);
  for (const name of names.split('\n').filter(Boolean)) await engine.succeeds(['rmi', '--force', name]);
}

/** Compares the image's bill of materials with the packages that lie in it. */
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
 * The number of packages in an image.
 * @throws {FriendlyError} when its bill of materials does not list exactly those
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

/** Size in bytes and user of an image. */
export async function inspectImage(engine: Engine, image: string): Promise<{ bytes: number; user: string }> {
  const format = '{{.Size}} {{.Config.User}}';
  const [bytes = '', user = ''] = (await engine.call(['image', 'inspect', '--format', format, image]))
    .trim()
    .split(' ');
  return { bytes: Number(bytes), user };
}
