import { EmptyProject, startHttpDouble, testAccessToken } from '@platform/testing';
import type { HttpDouble } from '@platform/testing';
import vectors from '../trust-test-vectors.json';

// A test vector of the README.
const CODE = 'ibkPoC6DH/x1sRnAsGzRLZ6g75BZCqjiBwdTdqtHhG4=';
const PROGRAM = `
  const secret = 'kP3v9QmX7cT1wZ5yB8nR2sL6dF4hJ0gA-_uEiOaYtCs';
  const request = { requestTimestampUtc: '2026-09-24T10:15:30Z', applicationKey: 'billing-api', persona: 1, userName: 'jdoe' };
  const tokens = new TokenProvider({
    authServiceUrl: process.argv[2], applicationKey: 'billing-api', sharedSecret: secret, persona: 1, userName: 'jdoe',
  });
  tokens.getToken().then(
    (token) => console.log(token, signTrustRequest(request, secret)),
    (error) => { console.error(error); process.exitCode = 1; },
  );
`;
const VECTORS_PROGRAM = `
  const throws = (work) => { try { work(); return false; } catch { return true; } };
  const agree = ({ request, sharedSecret, authenticationCode }) => signTrustRequest(request, sharedSecret) === authenticationCode;
  const refused = ({ request }) => throws(() => signTrustRequest(request, 'secret'));
  console.log(String(vectors.accepted.filter(agree).length), String(vectors.refused.filter(refused).length));
`;
const TYPED_PROGRAM = `
  import { TokenProvider, createTrustRequest } from '@platform/auth-client';
  import type { TrustRequest } from '@platform/auth-client';
  const settings = { authServiceUrl: 'http://a', applicationKey: 'a', sharedSecret: 's', persona: 1, userName: 'u' };
  export const token: Promise<string> = new TokenProvider(settings).getToken();
  export const request: TrustRequest = createTrustRequest(
    { applicationKey: 'a', persona: 1, userName: 'u' }, 's', new Date(),
  );
  // @ts-expect-error a secret is required
  new TokenProvider({ authServiceUrl: 'http://a', applicationKey: 'a', persona: 1, userName: 'u' });
`;

describe('the published package, in an empty project', () => {
  const accessToken = testAccessToken();
  let project: EmptyProject;
  let service: HttpDouble;

  beforeAll(async () => {
    project = await EmptyProject.withPackages({ packages: ['libs/auth-client'] });
    service = await startHttpDouble((request, response) => {
      request.resume();
      response.writeHead(request.url === '/auth/token/trust' ? 200 : 404, {
        'content-type': 'application/json',
      });
      response.end(JSON.stringify({ wasSuccessful: true, accessToken }));
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
      "import { TokenProvider, signTrustRequest } from '@platform/auth-client';",
    ],
    [
      'CommonJS',
      'program.cjs',
      "const { TokenProvider, signTrustRequest } = require('@platform/auth-client');",
    ],
  ])('works from %s', async (_kind, file, head) => {
    await project.write(file, head + PROGRAM);
    expect(await project.run(file, service.url)).toBe(`${accessToken} ${CODE}\n`);
  });

  it.each([
    [
      'an ES module',
      'vectors.mjs',
      `import vectors from '@platform/auth-client/trust-test-vectors.json' with { type: 'json' };
       import { signTrustRequest } from '@platform/auth-client';`,
    ],
    [
      'CommonJS',
      'vectors.cjs',
      `const vectors = require('@platform/auth-client/trust-test-vectors.json');
       const { signTrustRequest } = require('@platform/auth-client');`,
    ],
  ])('includes its test vectors for %s, and matches them', async (_kind, file, head) => {
    await project.write(file, head + VECTORS_PROGRAM);
    const { accepted, refused } = vectors;
    expect(await project.run(file)).toBe(`${String(accepted.length)} ${String(refused.length)}\n`);
  });

  it('includes types for ES modules and for CommonJS', async () => {
    for (const file of ['typed.mts', 'typed.cts']) await project.write(file, TYPED_PROGRAM);
    await project.typeCheck('typed.mts', 'typed.cts');
  }, 120_000);

  it('has no dependencies', async () => {
    expect(await project.installedPackages()).toEqual(['node_modules/@platform/auth-client']);
  });
});
