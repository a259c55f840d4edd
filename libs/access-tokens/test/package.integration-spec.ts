import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  EmptyProject,
  authServiceVariables,
  bearer,
  eventually,
  findFreePorts,
  startAuthServiceDouble,
} from '@platform/testing';
import type { AuthServiceDouble, RunningProcess } from '@platform/testing';
import { Persona } from '@platform/personas';

const PACKAGES = ['personas', 'contracts', 'auth-client', 'access-tokens'];
const LINKED = [
  'zod',
  'jsonwebtoken',
  'passport',
  'passport-jwt',
  'reflect-metadata',
  'fastify',
  '@nestjs/common',
  '@nestjs/core',
  '@nestjs/passport',
  '@nestjs/platform-express',
];
/** Maximum time from the publication of a revocation until every service refuses the token. */
const REVOKED_WITHIN_MS = 2_000;

/** Returns the TypeScript code blocks of a library's README. */
async function examples(library: string): Promise<string[]> {
  const readme = await readFile(join(__dirname, '../..', library, 'README.md'), 'utf8');
  return [...readme.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code]) => code!);
}

/** Returns the output that the comments of an example promise. */
function promisedOutput(code: string): string {
  const lines = [...code.matchAll(/console\.log\(.*\); \/\/ ([^:\n]*)/g)].map(
    ([, printed]) => `${printed}\n`,
  );
  return lines.join('');
}

describe('the published packages, installed in a separate project', () => {
  let project: EmptyProject;
  let auth: AuthServiceDouble;
  const servers: Record<string, { url: string; running: RunningProcess }> = {};

  beforeAll(async () => {
    auth = await startAuthServiceDouble();
    project = await EmptyProject.withPackages({
      packages: PACKAGES.map((name) => `libs/${name}`),
      linked: LINKED,
    });
    const [onFastify, onNest] = await examples('access-tokens');
    const [personas, contracts] = [await examples('personas'), await examples('contracts')];
    await project.write('fastify.mts', onFastify!);
    await project.write('nest.cts', onNest!);
    await project.write('personas.mts', personas[0]!);
    await project.write('contracts.cts', contracts[0]!);
    await project.build('fastify.mts', 'nest.cts', 'personas.mts', 'contracts.cts');
    const ports = await findFreePorts(2);
    for (const [index, file] of ['fastify.mjs', 'nest.cjs'].entries()) {
      const port = String(ports[index]);
      const running = await project.start(file, { ...authServiceVariables(auth.url), PORT: port });
      servers[file] = { url: `http://127.0.0.1:${port}`, running };
    }
    for (const { url, running } of Object.values(servers))
      await eventually(
        async () => {
          if (running.child.exitCode !== null) throw new Error(running.output());
          expect(await statusOf(`${url}/me`, bearer({}))).toBe(200);
        },
        { timeoutMs: 60_000 },
      );
  }, 300_000);

  afterAll(async () => {
    for (const { running } of Object.values(servers)) await running.stop();
    await auth.close();
    await project.remove();
  });

  it.each(['fastify.mjs', 'nest.cjs'])('validates tokens in %s', async (server) => {
    const me = `${servers[server]!.url}/me`;
    const good = await fetch(me, { headers: bearer({}) });
    expect([good.status, await good.json()]).toMatchObject([200, { subject: 'personid:1001' }]);
    const none = await fetch(me);
    expect([none.status, none.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
    expect(await none.json()).toMatchObject({ message: 'A bearer token is required.' });
    expect(await statusOf(me, bearer({ aud: 'another' }))).toBe(401);
    expect(await statusOf(me, bearer({ header: { alg: 'none' } }))).toBe(401);
  });

  it.each(['fastify.mjs', 'nest.cjs'])('refuses revoked tokens in %s within 2 s', async (server) => {
    const me = `${servers[server]!.url}/me`;
    const [revoked, other] = [bearer({ jti: `revoked-${server}` }), bearer({})];
    expect(await statusOf(me, revoked)).toBe(200);
    const revocationDate = new Date().toISOString();
    auth.revocations.push({ domain: 'jti', identifier: `revoked-${server}`, revocationDate });
    await eventually(async () => expect(await statusOf(me, revoked)).toBe(401), {
      timeoutMs: REVOKED_WITHIN_MS,
    });
    expect(await statusOf(me, other)).toBe(200);
  });

  it('enforces the persona decorators', async () => {
    const { url } = servers['nest.cjs']!;
    const customer = bearer({ personas: Persona.Customer });
    expect(await statusOf(`${url}/customers`, customer)).toBe(200);
    const office = await fetch(`${url}/office`, { headers: customer });
    expect([office.status, office.headers.get('www-authenticate')]).toEqual([
      403,
      'Bearer error="insufficient_scope"',
    ]);
    expect(await statusOf(`${url}/open`, {})).toBe(200);
  });

  it.each([
    ['personas', 'personas.mjs'],
    ['contracts', 'contracts.cjs'],
  ])('runs the example of %s', async (library, file) => {
    expect(await project.run(file)).toBe(promisedOutput((await examples(library))[0]!));
  });

  it('installs nothing that its package.json does not name', async () => {
    const expected = [...PACKAGES.map((name) => `@platform/${name}`), ...LINKED];
    const installed = (await project.installedPackages()).filter((path) => path.startsWith('node_modules/'));
    expect(installed.sort()).toEqual(expected.map((name) => `node_modules/${name}`).sort());
  });
});

async function statusOf(url: string, headers: Record<string, string>): Promise<number> {
  const response = await fetch(url, { headers });
  await response.arrayBuffer();
  return response.status;
}
