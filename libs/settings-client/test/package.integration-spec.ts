import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { EmptyProject } from '@platform/testing';

const PROGRAM = `
  const client = new SettingsClient({ baseUrl: process.argv[2], token: 'token' });
  client.getValueOrNull('S', 'n').then(
    (value) => console.log(JSON.stringify(value), typeof SettingNotFoundError),
    (error) => { console.error(error); process.exitCode = 1; },
  );
`;
const TYPED_PROGRAM = `
  import { SettingsClient } from '@platform/settings-client';
  const client: SettingsClient = new SettingsClient({ baseUrl: 'http://a', token: () => 'token', cache: { ttlMs: 1 } });
  export const value: Promise<{ a: number } | null> = client.getValueOrNull<{ a: number }>('S', 'n');
  // @ts-expect-error a token is required
  new SettingsClient({ baseUrl: 'http://a' });
`;

describe('the published package, in an empty project', () => {
  let project: EmptyProject;
  let service: Server;
  let url: string;

  beforeAll(async () => {
    project = await EmptyProject.withPackage('libs/settings-client');
    service = createServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"a":1}');
    });
    await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${String((service.address() as AddressInfo).port)}`;
  }, 120_000);

  afterAll(async () => {
    service.closeAllConnections();
    await new Promise((resolve) => service.close(resolve));
    await project.remove();
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
    await project.write(file, head + PROGRAM);
    expect(await project.run(file, url)).toBe('{"a":1} function\n');
  });

  it('brings types for both', async () => {
    for (const file of ['typed.mts', 'typed.cts']) await project.write(file, TYPED_PROGRAM);
    await project.typeCheck('typed.mts', 'typed.cts');
  });

  it('depends on nothing', async () => {
    expect(await project.installedPackages()).toEqual(['node_modules/@platform/settings-client']);
  });
});
