import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

/** Where .ci/install-kubectl puts it. */
const INSTALLED = 'node_modules/.cache/kubectl/kubectl';

/** A kubectl whose kustomize knows components (version 5 or later), or null. The one on the PATH comes first. */
export function findKubectl(workspace: string): string | null {
  const candidates = ['kubectl', join(workspace, INSTALLED)];
  return candidates.find((program) => isRecent(program)) ?? null;
}

function isRecent(program: string): boolean {
  const { stdout, status } = spawnSync(program, ['version', '--client'], {
    encoding: 'utf8',
    timeout: 30_000,
  });
  const major = /Kustomize Version: v(\d+)/.exec(stdout ?? '')?.[1];
  return status === 0 && Number(major ?? 0) >= 5;
}

/** What `kubectl kustomize` prints. @throws {Error} with kubectl's own words */
export function kubectlKustomize(kubectl: string, folder: string): string {
  const { stdout, stderr, status } = spawnSync(kubectl, ['kustomize', folder], {
    encoding: 'utf8',
    timeout: 60_000,
    maxBuffer: 64 * 2 ** 20,
  });
  if (status !== 0) throw new Error(`kubectl kustomize ${folder}: ${stderr}`);
  return stdout;
}
