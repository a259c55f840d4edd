import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '@platform/testing';
import { applicationSecretPurpose } from '../src/applications/application';
import { TOKEN_FLOWS } from '../src/rejections/token-rejection';
import { SECRET_BOX, startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

interface Vectors {
  accepted: {
    about: string;
    request: { applicationKey: string };
    sharedSecret: string;
    authenticationCode: string;
  }[];
  refused: { because: string; request: object }[];
}

const FILE = join(__dirname, '../../../libs/auth-client/trust-test-vectors.json');
const { accepted, refused } = JSON.parse(readFileSync(FILE, 'utf8')) as Vectors;

describe('trust, and the test vectors published with auth-client', () => {
  let service: AuthFixture;
  beforeAll(async () => {
    service = await startAuthService();
    const { database } = service;
    await database.query(
      `INSERT INTO auth.application (application_key, allowed_personas, allow_refresh, allowed_flows)
       VALUES ('billing-api', 31, false, $1)`,
      [TOKEN_FLOWS],
    );
    for (const [index, secret] of [...new Set(accepted.map(({ sharedSecret }) => sharedSecret))].entries())
      await database.query(
        `INSERT INTO auth.application_secret (application_key, version, ciphertext, expires_at)
         VALUES ('billing-api', $1, $2, now() + interval '1 day')`,
        [index + 1, SECRET_BOX.seal(applicationSecretPurpose('billing-api'), Buffer.from(secret))],
      );
  });
  afterAll(() => service.stop());
  beforeEach(() => service.database.query('DELETE FROM auth.token_audit'));

  const outcomeOf = async (body: object): Promise<[number, number]> => {
    const answer = await service.post('/auth/token/trust', body);
    return [answer.status, answer.body.rejectionReason as number];
  };

  // The timestamps are long past, but they are checked only after the signature. The audit trail shows which
  // of the two checks failed.
  it.each(accepted)('accepts the signature of: $about', async ({ request, authenticationCode }) => {
    expect(await outcomeOf({ ...request, authenticationCode })).toEqual([401, 1]);
    const wrong = Buffer.from(Buffer.from(authenticationCode, 'base64').map((byte) => byte ^ 1)).toString(
      'base64',
    );
    expect(await outcomeOf({ ...request, authenticationCode: wrong })).toEqual([401, 1]);
    await eventually(async () => {
      const rows = await service.database.query('SELECT detail FROM auth.token_audit ORDER BY audit_id');
      expect(rows).toEqual([{ detail: 'stale timestamp' }, { detail: 'wrong code' }]);
    });
  });

  it.each(refused)('refuses before comparing the signature: $because', async ({ request }) => {
    expect(await outcomeOf({ ...request, authenticationCode: 'AAAA' })).toEqual([400, 7]);
  });
});
