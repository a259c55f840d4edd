import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findFreePorts, runProcess } from '@platform/testing';
import type { RunningProcess } from '@platform/testing';

const WORKSPACE = join(__dirname, '../../..');
const ENTRY = join(WORKSPACE, 'dist/apps/settings-service/main.js');

/** A process of the built service. */
export interface Replica {
  url: string;
  process: RunningProcess;
}

/**
 * Builds the service unless it is built. The integration target builds it first; this serves runs of a single
 * file.
 */
export async function buildService(): Promise<void> {
  if (existsSync(ENTRY)) return;
  const bundle = ['tools/build/bundle.ts', 'apps/settings-service'];
  await promisify(execFile)(process.execPath, bundle, { cwd: WORKSPACE });
}

/** Starts a replica on free ports and waits until it is ready. */
export async function startReplica(environment: Record<string, string>): Promise<Replica> {
  const [port, metricsPort] = await findFreePorts(2);
  const url = `http://127.0.0.1:${String(port)}`;
  const env = { ...environment, PORT: String(port), METRICS_PORT: String(metricsPort) };
  return { url, process: await runProcess({ entry: ENTRY, env, readyUrl: `${url}/health/ready` }) };
}
