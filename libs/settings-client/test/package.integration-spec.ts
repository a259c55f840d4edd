import { EmptyProject, startHttpDouble } from '@platform/testing';
import type { HttpDouble } from '@platform/testing';

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
  interface Limits { readonly max: number; readonly names?: string[]; nested: { list: { a: number }[] } }
  declare const limits: Limits;
  export const read: Promise<Limits> = client.getValue<Limits>('S', 'n');
  export const written: Promise<{ settingValue: Limits }> = client.putSetting('S', 'n', limits);
  void client.writeSettings([{ subsystemName: 'S', settingName: 'n', settingValue: limits }]);
  // @ts-expect-error JSON would lose a function
  void client.putSetting('S', 'n', { f: () => 1 });
  // @ts-expect-error JSON would lose the entries of a map
  void client.putSetting('S', 'n', new Map());
  const watch = client.watch();
  const watched = watch.peek<Limits>('S', 'n');
  export const max: number | undefined = watched?.max;
  // @ts-expect-error values of a watch are frozen
  watched?.nested.list.push({ a: 1 });
  // @ts-expect-error nested values are frozen too
  if (watched) watched.nested.list[0]!.a = 1;
  void watch.getValue<Limits>('S', 'n', { signal: AbortSignal.timeout(1) });
  // @ts-expect-error a token is required
  new SettingsClient({ baseUrl: 'http://a' });
`;

describe('the published package, in an empty project', () => {
  let project: EmptyProject;
  let service: HttpDouble;

  beforeAll(async () => {
    project = await EmptyProject.withPackages({ packages: ['libs/settings-client'] });
    service = await startHttpDouble((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"a":1}');
    });
  }, 120_000);

  afterAll(async () => {
    await service.close();
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
    expect(await project.run(file, service.url)).toBe('{"a":1} function\n');
  });

  it('includes types for ES modules and for CommonJS', async () => {
    for (const file of ['typed.mts', 'typed.cts']) await project.write(file, TYPED_PROGRAM);
    await project.typeCheck('typed.mts', 'typed.cts');
  }, 120_000);

  it('has the OpenFeature provider in a separate entry, which needs the SDK', async () => {
    await project.write('flags.cjs', "require('@platform/settings-client/openfeature');");
    await expect(project.run('flags.cjs')).rejects.toThrow(/@openfeature\/server-sdk/);
  });

  it('has no dependencies', async () => {
    expect(await project.installedPackages()).toEqual(['node_modules/@platform/settings-client']);
  });
});
