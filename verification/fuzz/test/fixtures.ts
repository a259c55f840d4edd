import { generateKeyPairSync, sign } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Fixtures, type OpenApiDocument, operationsOf } from '../fixtures';

const NAMES = ['auth', 'settings', 'task'] as const;

/** Fixtures without a platform: the committed OpenAPI documents and invented ids and tokens. */
export function makeFixtures(): Fixtures {
  const documents = Object.fromEntries(
    NAMES.map((name) => [name, readDocument(name)]),
  ) as Fixtures['documents'];
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const text = 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0';
  const signature = sign('sha256', Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' });
  const jwk = publicKey.export({ format: 'jwk' });
  return {
    operations: NAMES.flatMap((name) => operationsOf(name, documents[name])),
    documents,
    hosts: { auth: '127.0.0.1:1', settings: '127.0.0.1:2', task: '127.0.0.1:3' },
    scheduleIds: ['11111111-1111-4111-8111-111111111111'],
    instanceIds: ['22222222-2222-4222-8222-222222222222'],
    historyIds: ['1'],
    cursors: ['cursor'],
    refreshTokens: ['refresh'],
    sessionIds: ['session'],
    accessToken: (persona) => `token-of-${persona}`,
    forge: {
      issuer: 'http://127.0.0.1:1',
      audience: 'property-platform',
      hmacKey: Buffer.alloc(32, 1),
      hmacKeyId: 'access-development',
      asymmetricToken: `${text}.${signature.toString('base64url')}`,
      publicKeys: [{ ...(jwk as { kty: string }), kid: 'es', alg: 'ES256' }],
    },
  };
}

function readDocument(name: string): OpenApiDocument {
  const file = join(__dirname, `../../../docs/openapi/${name}-service.json`);
  return JSON.parse(readFileSync(file, 'utf8')) as OpenApiDocument;
}
