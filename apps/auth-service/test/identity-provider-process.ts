import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { runProcess } from '@platform/testing';
import type { RunningProcess } from '@platform/testing';
import { PASSWORD } from './auth-fixture';

const WORKSPACE = join(__dirname, '../../..');
const ENTRY = 'tools/neighbours/src/identity-provider.ts';

export const OPENID_CLIENT = {
  OPENID_CLIENT_ID: 'auth-service',
  OPENID_CLIENT_SECRET: 'openid-client-secret-for-tests-only-01',
  /** The redirect URI of a real browser. The tests' browser posts to a chosen replica instead. */
  OPENID_REDIRECT_URI: 'http://127.0.0.1:3001/auth/token/openId',
};

/** The platform's development identity provider (`oidc-provider`) in a process of its own. */
export class IdentityProviderProcess {
  private running: RunningProcess | null = null;

  private constructor(
    private readonly bundle: string,
    private readonly port: number,
    private readonly environment: Readonly<Record<string, string>>,
  ) {}

  /** @param environment variables that override the defaults */
  static async start(environment: Readonly<Record<string, string>> = {}): Promise<IdentityProviderProcess> {
    const bundle = join(WORKSPACE, `dist/test/identity-provider-${String(process.pid)}.cjs`);
    const options = ['--bundle', '--platform=node', '--format=cjs', '--packages=external'];
    await promisify(execFile)(
      join(WORKSPACE, 'node_modules/.bin/esbuild'),
      [ENTRY, ...options, '--tsconfig=tsconfig.base.json', `--outfile=${bundle}`, '--log-level=warning'],
      { cwd: WORKSPACE },
    );
    const provider = new IdentityProviderProcess(bundle, await freePort(), environment);
    await provider.up();
    return provider;
  }

  /** The URL on which the process listens. */
  get url(): string {
    return `http://127.0.0.1:${String(this.port)}`;
  }

  get issuer(): string {
    return this.environment['ISSUER'] ?? this.url;
  }

  /** The output since the last start. */
  get output(): string {
    return this.running?.output() ?? '';
  }

  /** Starts or restarts the provider on the same port, with new keys. */
  async up(): Promise<void> {
    this.running = await runProcess({
      entry: this.bundle,
      env: {
        PORT: String(this.port),
        LOG_LEVEL: 'warn',
        CLIENT_ID: OPENID_CLIENT.OPENID_CLIENT_ID,
        CLIENT_SECRET: OPENID_CLIENT.OPENID_CLIENT_SECRET,
        REDIRECT_URIS: OPENID_CLIENT.OPENID_REDIRECT_URI,
        USER_PASSWORD: PASSWORD,
        ...this.environment,
      },
      readyUrl: `${this.url}/health/ready`,
    });
  }

  async down(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    await this.running?.stop(signal);
    this.running = null;
  }

  /** Stops the process without ending it: the kernel accepts connections, but nothing responds. */
  pause(): void {
    this.running?.child.kill('SIGSTOP');
  }

  resume(): void {
    this.running?.child.kill('SIGCONT');
  }

  async stop(): Promise<void> {
    await this.down();
    await rm(this.bundle, { force: true });
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
