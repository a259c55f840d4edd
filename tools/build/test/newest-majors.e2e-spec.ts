import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  EmptyProject,
  authServiceVariables,
  bearer,
  eventually,
  findFreePorts,
  startAuthServiceDouble,
  testsThatNeed,
} from '@platform/testing';
import type { AuthServiceDouble } from '@platform/testing';

const LIBRARIES = join(__dirname, '../../../libs');
const PACKAGES = ['personas', 'auth-client', 'access-tokens', 'settings-client'];
/** Peer dependencies of all the libraries, from their package.json. */
const PEERS = Object.assign({}, ...PACKAGES.map((name) => manifestOf(name).peerDependencies ?? {})) as Record<
  string,
  string
>;
const REGISTRY_TIMEOUT_MS = 60_000;

interface Manifest {
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

function manifestOf(name: string): Manifest {
  return JSON.parse(readFileSync(join(LIBRARIES, name, 'package.json'), 'utf8')) as Manifest;
}

/** Returns the newest major of a version range, its last alternative: `^11.0.0` of `^10.0.0 || ^11.0.0`. */
function newestOf(range: string): string {
  return range.split('||').at(-1)!.trim();
}

/** Returns the newest version in the registry; null if the registry cannot be reached. */
function latest(name: string): string | null {
  const { stdout, status } = spawnSync('npm', ['view', name, 'version'], {
    encoding: 'utf8',
    timeout: REGISTRY_TIMEOUT_MS,
  });
  return status === 0 ? stdout.trim() : null;
}

const NODE_TYPES = latest('@types/node');
const { describe: describeWithRegistry } = testsThatNeed(
  'the published libraries beside the newest majors',
  NODE_TYPES === null ? 'no registry can be reached' : null,
);

const IMPORTS = `
  import { AccessTokenValidator, staticKeys } from '@platform/access-tokens';
  import { TokenProvider, signTrustRequest } from '@platform/auth-client';
  import { SettingsClient } from '@platform/settings-client';
  import { Persona } from '@platform/personas';
`;
const PROVIDER = "import { SettingsProvider } from '@platform/settings-client/openfeature';\n";
const TYPED = `${IMPORTS}
  export const client: SettingsClient = new SettingsClient({ baseUrl: 'http://a', token: () => 'token' });
  export const value: Promise<{ a: number } | null> = client.getValueOrNull<{ a: number }>('S', 'n');
  const identity = { authServiceUrl: 'http://a', applicationKey: 'a', sharedSecret: 's', userName: 'u' };
  export const token: Promise<string> = new TokenProvider({ ...identity, persona: Persona.InternalPartner }).getToken();
  export const code: string = signTrustRequest(
    { requestTimestampUtc: '2026-09-24T10:15:30Z', applicationKey: 'a', persona: 1, userName: 'u' }, 's',
  );
  export const keys = staticKeys([{ alg: 'HS256', kid: 'k', secret: Buffer.alloc(32) }]);
  export type Validator = AccessTokenValidator;
`;
/**
 * Built with skipLibCheck, because the OpenFeature SDK's own declarations lag behind the newest types of
 * Node.
 */
const TYPED_PROVIDER = `${PROVIDER}
  import { SettingsClient } from '@platform/settings-client';
  const client = new SettingsClient({ baseUrl: 'http://a', token: () => 'token' });
  export const provider: SettingsProvider = new SettingsProvider({ client, subsystemName: 'S' });
`;
const LOADED = `console.log([AccessTokenValidator, staticKeys, TokenProvider, signTrustRequest, SettingsClient,
  SettingsProvider].map((each) => typeof each).join(' '));`;

/** Returns the README's example for Nest. */
function nestExample(): string {
  const readme = readFileSync(join(LIBRARIES, 'access-tokens/README.md'), 'utf8');
  const examples = [...readme.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code]) => code!);
  return examples.find((code) => code.includes('NestFactory'))!;
}

describeWithRegistry('the published libraries beside the newest majors', () => {
  let project: EmptyProject;
  let auth: AuthServiceDouble;

  beforeAll(async () => {
    const peers = { ...PEERS, '@nestjs/platform-express': PEERS['@nestjs/core']! };
    project = await EmptyProject.withPackages({
      packages: PACKAGES.map((name) => `libs/${name}`),
      fetched: [
        ...Object.entries(peers).map(([name, range]) => `${name}@${newestOf(range)}`),
        `@types/node@${String(NODE_TYPES)}`,
        'reflect-metadata@latest',
        'rxjs@latest',
      ],
    });
    auth = await startAuthServiceDouble();
  }, 300_000);

  afterAll(async () => {
    await auth.close();
    await project.remove();
  });

  it('installs the newest majors that the libraries allow, not the workspace’s own', async () => {
    const installed = await project.installedVersions();
    const majorOf = (version = ''): string => version.split('.')[0]!;
    for (const name of ['@nestjs/common', '@nestjs/core', '@nestjs/passport'])
      expect([name, majorOf(installed.get(`node_modules/${name}`))]).toEqual([
        name,
        majorOf(newestOf(PEERS[name]!).replace('^', '')),
      ]);
    expect(installed.get('node_modules/@types/node')).toBe(NODE_TYPES);
  });

  it('type-checks against them, its own declarations included', async () => {
    for (const file of ['typed.mts', 'typed.cts']) await project.write(file, TYPED);
    await project.typeCheck('typed.mts', 'typed.cts');
    for (const file of ['provider.mts', 'provider.cts']) await project.write(file, TYPED_PROVIDER);
    await project.build('provider.mts', 'provider.cts');
  }, 120_000);

  it.each(['loaded.mjs', 'loaded.cjs'])('loads as %s', async (file) => {
    const imports = file.endsWith('.mjs')
      ? IMPORTS + PROVIDER
      : (IMPORTS + PROVIDER).replaceAll(/import (\{[^}]*\}) from ('[^']*');/g, 'const $1 = require($2);');
    await project.write(file, imports + LOADED);
    expect(await project.run(file)).toBe(`${'function '.repeat(6).trim()}\n`);
  });

  it('guards a service of the newest Nest', async () => {
    await project.write('nest.mts', nestExample());
    await project.build('nest.mts');
    const [port] = await findFreePorts(1);
    const running = await project.start('nest.mjs', {
      ...authServiceVariables(auth.url),
      PORT: String(port),
    });
    const statusOf = async (headers: Record<string, string>): Promise<number> => {
      const response = await fetch(`http://127.0.0.1:${String(port)}/me`, { headers });
      await response.arrayBuffer();
      return response.status;
    };
    try {
      await eventually(
        async () => {
          if (running.child.exitCode !== null) throw new Error(running.output());
          expect(await statusOf(bearer({}))).toBe(200);
        },
        { timeoutMs: 60_000 },
      );
      expect(await statusOf({})).toBe(401);
      expect(await statusOf(bearer({ aud: 'another' }))).toBe(401);
    } finally {
      await running.stop();
    }
  }, 180_000);
});
