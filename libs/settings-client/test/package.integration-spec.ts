import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const WORKSPACE = join(__dirname, '../../..');
const run = (cwd: string, command: string, ...args: string[]) => promisify(execFile)(command, args, { cwd });

const PROGRAM = `
  const client = new SettingsClient({ baseUrl: process.argv[2], token: 'token' });
  client.getValueOrNull('S', 'n').then(
    (value) => console.log(JSON.stringify(value), typeof SettingNotFoundError),
    (error) => { console.error(error); process.exitCode = 1; },
  );
`;
const TYPED_PROGRAM = `
  const client: SettingsClient = new SettingsClient({ baseUrl: 'http://a', token: () => 'token', cache: { ttlMs: 1 } });
  export const value: Promise<{ a: number } | null> = client.getValueOrNull<{ a: number }>('S', 'n');
  // @ts-expect-error a token is required
  new SettingsClient({ baseUrl: 'http://a' });
`;

describe('the published package, in an empty project', () => {
  let project: string;
  let service: Server;
  let url: string;

  beforeAll(async () => {
    project = await mkdtemp(join(tmpdir(), 'settings-client-'));
    await run(WORKSPACE, process.execPath, 'tools/build/client-package.ts', 'libs/settings-client');
    const { stdout } = await run(
      join(WORKSPACE, 'dist/libs/settings-client'),
      'npm',
      'pack',
      '--pack-destination',
      project,
      '--silent',
    );
    await writeFile(join(project, 'package.json'), '{"private":true}');
    await run(
      project,
      'npm',
      'install',
      '--offline',
      '--no-audit',
      '--no-fund',
      join(project, stdout.trim()),
    );
    service = createServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"a":1}');
    });
    await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${String((service.address() as AddressInfo).port)}`;
  }, 120_000);

  afterAll(async () => {
    service.closeAllConnections();
    await new Promise((resolve) => service.close(resolve));
    await rm(project, { recursive: true, force: true });
  });

  it.each([
    [
      'an ES module',
      'program.mjs',
      "import { SettingNotFoundError, SettingsClient } from '@platform/settings-client';",
    ],
    [
      'CommonJS',
      'program.cjs',
      "const { SettingNotFoundError, SettingsClient } = require('@platform/settings-client');",
    ],
  ])('works from %s', async (_kind, file, head) => {
    await writeFile(join(project, file), head + PROGRAM);
    const { stdout } = await run(project, process.execPath, file, url);
    expect(stdout).toBe('{"a":1} function\n');
  });

  it('brings types for both', async () => {
    const head = "import { SettingsClient } from '@platform/settings-client';";
    for (const file of ['typed.mts', 'typed.cts']) await writeFile(join(project, file), head + TYPED_PROGRAM);
    await cp(join(WORKSPACE, 'node_modules/@types/node'), join(project, 'node_modules/@types/node'), {
      recursive: true,
    });
    await cp(join(WORKSPACE, 'node_modules/undici-types'), join(project, 'node_modules/undici-types'), {
      recursive: true,
    });
    const tsc = join(WORKSPACE, 'node_modules/typescript/bin/tsc');
    const options = ['--noEmit', '--strict', '--target', 'es2022', '--module', 'node16', '--types', 'node'];
    await run(project, process.execPath, tsc, ...options, 'typed.mts', 'typed.cts');
  });

  it('depends on nothing', async () => {
    const { stdout } = await run(project, 'npm', 'ls', '--all', '--json', '--omit=dev');
    const { dependencies } = JSON.parse(stdout) as {
      dependencies: Record<string, { dependencies?: object }>;
    };
    expect(dependencies['@platform/settings-client']?.dependencies).toBeUndefined();
  });
});
