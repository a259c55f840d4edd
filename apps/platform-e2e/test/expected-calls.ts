/** Requests of the examples in docs/calling-auth-service.md with their responses, by heading. */
const GRANTED = '200, reason 0';
const token = (path: string, outcome = GRANTED): string => `POST /auth/token/${path} ${outcome}`;

const FLOWS = {
  'Applications that have to prove themselves': [token('user')],
  'User name and password': [token('user')],
  'Trust: a backend signs for a user': [token('trust')],
  'Trust-simple: the secret instead of a signature': [token('trust-simple')],
  Refresh: [token('refresh')],
  'Bearer: a valid access token for a fresh one': [token('bearer')],
};
const WINDOWS_IS_OFF = 'GET /auth/token/user/winauth 401, reason 8';
const HAS_ACCESS = 'GET /auth/accessPoints/SecurityEditor~~AccessPointName~~Scheduling/hasAccess 200';
/** Request for the published keys. The verifier also sends it in the background. */
export const JWKS = 'GET /auth/.well-known/jwks.json 200';
const REVOCATIONS = 'GET /auth/revocations 200';
const SESSIONS = 'GET /auth/sessions 200';
const LOGGED_OUT = 'POST /auth/logout 204';
const REVOKED = 'PUT /auth/revocations/svc-personid/1003 200';

export const CALLING_BY_SHELL: Record<string, string[]> = {
  'Calling auth-service': [],
  ...FLOWS,
  'Single sign-on (OpenID Connect)': ['GET /auth/token/sso/initiate 302', token('openId')],
  'Back to your application': [
    'GET /auth/token/sso/initiate 302',
    'POST /auth/token/openId 303',
    token('code'),
  ],
  'Obsolete endpoints': [token('trustedToken'), token('user/AzureADLogOn', '400, reason 7'), WINDOWS_IS_OFF],
  'Validating access tokens': [
    JWKS,
    'GET /auth/me 200',
    'GET /.well-known/openid-configuration 200',
    'POST /auth/introspect 200',
  ],
  'Check access': ['GET /auth/roles/SecurityEditor~~GroupName~~Operations/members 200', HAS_ACCESS],
  Revocations: [REVOKED, 'GET /auth/revocations/svc-personid/1003 200', REVOCATIONS],
  Sessions: [token('user'), SESSIONS, LOGGED_OUT],
};

export const CALLING_BY_TYPESCRIPT: Record<string, string[]> = {
  'A function for the examples': [],
  ...FLOWS,
  'Naming your application': ['GET /auth/token/sso/initiate 302'],
  'Obsolete endpoints': [token('trustedToken'), WINDOWS_IS_OFF],
  'Validating access tokens': [REVOCATIONS],
  'Check access': [HAS_ACCESS],
  Revocations: [REVOKED],
  Sessions: [SESSIONS, 'DELETE /auth/sessions/{id} 204', LOGGED_OUT],
};

/** The code of the test vector on the page. */
export const VECTOR_CODE = 'ibkPoC6DH/x1sRnAsGzRLZ6g75BZCqjiBwdTdqtHhG4=';

const jwt = expect.stringMatching(/^eyJ[\w-]+\.[\w-]+\.[\w-]+$/) as unknown;
const revocation = {
  domain: 'svc-personid',
  identifier: '1003',
  revocationDate: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)$/) as unknown,
};

/** Bodies of successful responses, by method and path. */
export const BODIES: readonly (readonly [RegExp, unknown])[] = [
  [
    /^POST \/auth\/token\/(user|trust|trust-simple|refresh|bearer|openId|code|trustedToken)$/,
    expect.objectContaining({
      accessToken: jwt,
      rejectionReason: 0,
      rejectionDetails: null,
      wasSuccessful: true,
    }),
  ],
  [
    // `trust` is not listed, because a technician without an account gets no refresh token.
    /^POST \/auth\/token\/(user|refresh|openId|code)$/,
    expect.objectContaining({ refreshToken: expect.anything() }),
  ],
  [/\/auth\/introspect$/, expect.objectContaining({ active: true, userId: 9001 })],
  [/\/jwks\.json$/, { keys: expect.any(Array) as unknown }],
  [/\/auth\/me$/, expect.objectContaining({ personas: 1, userId: 9001 })],
  [
    /\/members$/,
    {
      members: expect.arrayContaining([
        { type: 'SecurityEditor', key: 'UserName', value: 'ivy.internal' },
      ]) as unknown,
      identityNames: ['ivy.internal'],
    },
  ],
  [/\/hasAccess\?/, { hasAccess: true }],
  [/^GET \/auth\/revocations\/svc-personid\/1003$/, revocation],
  [/^GET \/auth\/revocations\?minDate=2026/, expect.arrayContaining([revocation])],
];
