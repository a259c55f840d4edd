import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { signTrustRequest } from './callers.ts';
import { WORKSPACE } from './state-folder.ts';

interface Vector {
  readonly about: string;
  readonly request: Parameters<typeof signTrustRequest>[0];
  readonly sharedSecret: string;
  readonly authenticationCode: string;
}

const PUBLISHED = join(WORKSPACE, 'libs/auth-client/trust-test-vectors.json');
const { accepted } = JSON.parse(readFileSync(PUBLISHED, 'utf8')) as { accepted: readonly Vector[] };

it.each(accepted)('signs as in the published vector: $about', (vector) => {
  expect(signTrustRequest(vector.request, vector.sharedSecret)).toBe(vector.authenticationCode);
});
