import { permitFaults } from '@platform/testing';
import { signTrustRequest } from '@platform/auth-client';
import { applicationSecretPurpose } from '../src/applications/application';
import { administrator } from './admin-fixture';
import { PASSWORD, SECRET_BOX, expectOutcome, startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

/** The public stand-in for the secrets of unknown applications in release 1.0.0. */
const PUBLISHED_STAND_IN = 'dummy'.repeat(9).slice(0, 44);
const CARL = { persona: 2, userName: 'carl.customer' };

/**
 * Secrets that a stranger may try: former constants of the code, empty values, and values that a store
 * without secrets may contain.
 */
const GUESSES = [
  PUBLISHED_STAND_IN,
  'dummy',
  '\u0001',
  'null',
  'undefined',
  '[object Object]',
  '0'.repeat(44),
];

describe('an application without a live secret never proves itself', () => {
  let service: AuthFixture;
  let admin: ReturnType<typeof administrator>;
  beforeAll(async () => {
    service = await startAuthService();
    admin = administrator(service.database.ownerUrl);
  });
  afterAll(() => service.stop());

  /** Ways in which an application loses its live secrets. */
  const LOCKED_OUT: Record<string, (key: string) => Promise<unknown>> = {
    'that was locked out': (key) => admin.json(`applications expire-secret ${key} 1 --force`),
    'whose two secrets expired': async (key) => {
      await admin.json(`applications rotate-secret ${key}`);
      await service.database.query(
        `UPDATE auth.application_secret SET expires_at = now() - interval '1 second' WHERE application_key = $1`,
        [key],
      );
    },
    'whose secrets are gone': (key) =>
      service.database.query('DELETE FROM auth.application_secret WHERE application_key = $1', [key]),
    'whose secret is empty': (key) =>
      service.database.query(
        'UPDATE auth.application_secret SET ciphertext = $2 WHERE application_key = $1',
        [key, SECRET_BOX.seal(applicationSecretPurpose(key), Buffer.alloc(0))],
      ),
    'whose secret cannot be opened': (key) =>
      service.database.query(
        'UPDATE auth.application_secret SET ciphertext = $2 WHERE application_key = $1',
        [key, Buffer.alloc(60, 1)],
      ),
    'that does not exist': (key) =>
      service.database.query('DELETE FROM auth.application WHERE application_key = $1', [key]),
    'that is disabled': (key) => admin.json(`applications disable ${key}`),
  };

  describe.each(Object.keys(LOCKED_OUT))('%s', (how) => {
    const applicationKey = how.replaceAll(' ', '-');
    let sharedSecret = '';
    beforeAll(async () => {
      ({ sharedSecret } = await admin.json(
        `applications create ${applicationKey} --personas all --flows all --allow-refresh`,
      ));
      await LOCKED_OUT[how]!(applicationKey);
    });

    // A secret that cannot be opened is correctly logged as an error.
    beforeEach(() => {
      if (how === 'whose secret cannot be opened') permitFaults();
    });

    const guesses = (): string[] => [...GUESSES, sharedSecret];
    const refused = { status: 401, reason: 1 };

    it('with its secret (trust-simple)', async () => {
      for (const guess of guesses()) {
        const sent = service.post('/auth/token/trust-simple', {
          applicationKey,
          sharedSecret: guess,
          ...CARL,
        });
        await expectOutcome(sent, refused);
      }
    });

    it('with a signature (trust)', async () => {
      for (const guess of guesses()) {
        const unsigned = { requestTimestampUtc: new Date().toISOString(), applicationKey, ...CARL };
        const authenticationCode = signTrustRequest(unsigned, guess);
        await expectOutcome(service.post('/auth/token/trust', { ...unsigned, authenticationCode }), refused);
      }
    });

    it('with the code of a sign-in', async () => {
      for (const guess of guesses()) {
        const code = { applicationKey, code: 'x', codeVerifier: 'v'.repeat(43), sharedSecret: guess };
        const { body } = await service.post('/auth/token/code', code).expect(401);
        expect(body.rejectionDetails).toBe('The application could not be authenticated.');
      }
    });

    it('with Basic credentials (introspection)', async () => {
      const login = await service.post('/auth/token/user', { user: 'carl.customer', password: PASSWORD });
      for (const guess of guesses()) {
        const sent = service
          .post('/auth/introspect')
          .type('form')
          .auth(applicationKey, encodeURIComponent(guess));
        const { status } = await sent.send({ token: login.body.accessToken });
        expect(status).toBe(401);
      }
    });
  });
});
