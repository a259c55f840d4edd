import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ManualClock } from '@platform/time';
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
/** The instant that the vectors are of. */
const CLOCK = new ManualClock(new Date('2026-09-24T10:15:30Z'));

describe('trust, and the test vectors published with auth-client', () => {
  let service: AuthFixture;
  beforeAll(async () => {
    service = await startAuthService({ clock: CLOCK });
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
  // Several vectors have one code, and a code is good for one use.
  beforeEach(() => service.database.query('DELETE FROM auth.trust_replay'));

  const outcomeOf = async (body: object): Promise<[number, number]> => {
    const answer = await service.post('/auth/token/trust', body);
    return [answer.status, answer.body.rejectionReason as number];
  };

  it.each(accepted)('takes the signature of: $about', async ({ request, authenticationCode }) => {
    const [status, reason] = await outcomeOf({ ...request, authenticationCode });
    // Who is named need not exist; a wrong proof would be 401.
    expect([
      [200, 0],
      [422, 1],
    ]).toContainEqual([status, reason]);
    const changed = { ...request, applicationKey: `${request.applicationKey} `, authenticationCode };
    expect(await outcomeOf(changed)).toEqual([401, 1]);
  });

  it.each(refused)('refuses before anything is compared: $because', async ({ request }) => {
    expect(await outcomeOf({ ...request, authenticationCode: 'AAAA' })).toEqual([400, 7]);
  });
});
