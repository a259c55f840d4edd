import type { ParameterDocs } from '@platform/service-defaults';
import { signInCookieName } from '../openid/sign-in-cookie';
import { tokenOperation } from './token-docs';

const APPLICATION_KEY: Readonly<Record<string, ParameterDocs>> = {
  'X-Application-Key': {
    description:
      'The application that asks; without it the configured default. It decides on the refresh token.',
    example: 'demo-backend',
  },
};
const COOKIE: Readonly<Record<string, ParameterDocs>> = {
  Cookie: {
    description: `\`${signInCookieName(false)}\`, which GET /auth/token/sso/initiate set: a sign-in is bound to its browser.`,
  },
};
const OVERRIDE: Readonly<Record<string, ParameterDocs>> = {
  bearerTokenOverride: {
    description: 'Replaces the header. For test environments; ignored unless switched on.',
  },
};
/** Not a security scheme: without it the answer is a TokenResponse. */
const BEARER: Readonly<Record<string, ParameterDocs>> = {
  Authorization: {
    description: '`Bearer <ACCESS_TOKEN>`: the token to exchange.',
    example: 'Bearer <ACCESS_TOKEN>',
  },
};

export const REFRESH = tokenOperation({
  ...{ id: 'refreshToken', flow: 'refresh', summary: 'Exchange a refresh token for the next pair of tokens' },
  description: `A refresh token works once; its successor comes with the answer. Send the same token again when no answer came: for 30
seconds it gets the same successor. Later it counts as stolen, and every token of that sign-in stops working (reason 6).`,
  body: {
    examples: {
      default: { summary: 'Signed with HMAC', value: { refreshToken: '<REFRESH_TOKEN>' } },
      asymmetric: {
        summary: 'Signed with the asymmetric key',
        value: { refreshToken: '<REFRESH_TOKEN>', hmacSigning: false },
      },
    },
  },
});
export const USER = tokenOperation({
  ...{ id: 'signInWithPassword', flow: 'password', summary: 'Sign in with user name and password' },
  description: `Unknown user, wrong password and locked account get the same answer. Five failures lock an account for a minute, and longer
each time.`,
  query: {
    grantAsInternalPartner: {
      description:
        'Asks for the persona InternalPartner too; somebody who is not eligible gets tokens without it.',
      schema: { type: 'boolean' },
    },
  },
  headers: APPLICATION_KEY,
  outage: 'the database, or the capacity for password hashes',
  body: {
    examples: {
      ivy: { summary: 'A development user', value: { user: 'ivy.internal', password: 'Demo-Passw0rd!' } },
    },
  },
});
export const TRUST = tokenOperation({
  ...{
    id: 'signInWithTrustSignature',
    flow: 'trust',
    summary: 'Service to service: a signed request for a user',
  },
  description: `\`authenticationCode\` is HMAC-SHA256, keyed with the UTF-8 bytes of the shared secret, in padded base64, over nine lines
joined by line feeds: \`TRUST-HMAC-SHA256\`, requestTimestampUtc as sent, applicationKey, persona, userName, serviceProviderID, name,
userAccountID, personID. An absent or null field is an empty line. The timestamp may be 300 s off; a code is accepted once.

The example is signed with the secret \`kP3v9QmX7cT1wZ5yB8nR2sL6dF4hJ0gA-_uEiOaYtCs\`.`,
  body: {
    examples: {
      user: {
        summary: 'For a user',
        value: {
          requestTimestampUtc: '2026-09-24T10:15:30Z',
          applicationKey: 'billing-api',
          authenticationCode: 'ibkPoC6DH/x1sRnAsGzRLZ6g75BZCqjiBwdTdqtHhG4=',
          persona: 1,
          userName: 'jdoe',
        },
      },
      technician: {
        summary: 'For a technician without an account',
        value: {
          requestTimestampUtc: '2026-09-24T10:15:30.123Z',
          applicationKey: 'billing-api',
          authenticationCode: 'z/1wgDYJIFs+qhevH6rV/uJS7zDRHpL2+8zoye6ZBeg=',
          persona: 4,
          userName: 'tech.4711',
          serviceProviderID: 815,
          name: 'Jörg Müller',
          userAccountID: null,
          personID: null,
        },
      },
    },
  },
});
export const TRUST_SIMPLE = tokenOperation({
  ...{
    id: 'signInWithSharedSecret',
    flow: 'trust-simple',
    summary: 'Service to service: the shared secret for a user',
  },
  description: 'For callers that cannot sign. A request that is overheard can be repeated: prefer trust.',
  body: {
    examples: {
      user: {
        summary: 'Development application and user',
        value: {
          applicationKey: 'demo-backend',
          sharedSecret: 'demo-backend-secret-for-local-use-only-000001',
          persona: 2,
          userName: 'carl.customer',
        },
      },
    },
  },
});
export const BEARER_EXCHANGE = tokenOperation({
  ...{ id: 'exchangeBearerToken', flow: 'bearer', summary: 'Exchange a valid access token for a fresh one' },
  description:
    'The same user, at most the same personas, the same `auth_time`: a sign-in more than 365 days ago is not extended.',
  query: OVERRIDE,
  headers: BEARER,
});
export const TRUSTED_TOKEN = tokenOperation({
  ...{ id: 'exchangeTrustedToken', flow: 'bearer', summary: 'Second name of bearer' },
  description: 'Takes the token from the body too.',
  successor: '/auth/token/bearer',
  query: OVERRIDE,
  headers: BEARER,
  body: {
    required: false,
    examples: { body: { summary: 'The token in the body', value: { token: '<ACCESS_TOKEN>' } } },
  },
});

const CALLBACK = {
  contentTypes: ['application/x-www-form-urlencoded', 'application/json'],
  examples: {
    code: {
      summary: 'Signed in',
      value: { state: 'Vx0…', code: 'SplxlOBeZQQYbYS6WxSbIA', iss: 'https://login.example.org' },
    },
    error: { summary: 'Refused by the provider', value: { state: 'Vx0…', error: 'access_denied' } },
  },
} as const;
const PROVIDER = 'the database or the identity provider';

export const OPENID = tokenOperation({
  ...{ id: 'completeSingleSignOn', flow: 'openid', summary: 'Complete a single sign-on' },
  description: `The identity provider has the browser post its callback here. A sign-in takes ten minutes at most and is good for one
callback, in the browser that began it.`,
  headers: { ...APPLICATION_KEY, ...COOKIE },
  body: CALLBACK,
  outage: PROVIDER,
});
export const AZURE_AD = tokenOperation({
  ...{ id: 'completeAzureAdSignOn', flow: 'openid', summary: 'Second name of openId' },
  successor: '/auth/token/openId',
  headers: { ...APPLICATION_KEY, ...COOKIE },
  body: CALLBACK,
  outage: PROVIDER,
});

const text = { type: 'string' };

export const SSO_INITIATE = tokenOperation({
  ...{ id: 'startSingleSignOn', flow: 'openid', summary: 'Start a single sign-on' },
  description:
    'To be opened in the browser that signs in: it gets a cookie, and a redirect to the identity provider.',
  headers: { ...APPLICATION_KEY, ...COOKIE },
  outage: PROVIDER,
  succeeds: {
    302: {
      description: 'To the identity provider.',
      headers: {
        Location: {
          description: 'Its authorization endpoint, with state, nonce and PKCE challenge.',
          ...{
            schema: text,
            required: true,
            example: 'https://login.example.org/authorize?response_type=code&…',
          },
        },
        'Set-Cookie': { description: 'Binds the sign-in to the browser.', schema: text, required: true },
        'Cache-Control': {
          description: 'No cache may keep this.',
          schema: text,
          required: true,
          example: 'no-store',
        },
        'Referrer-Policy': {
          description: 'The state stays between the two.',
          ...{ schema: text, required: true, example: 'no-referrer' },
        },
      },
    },
  },
});
export const WINDOWS = tokenOperation({
  ...{ id: 'signInWithWindows', flow: 'windows', summary: 'Windows authentication' },
  description: 'Kerberos (SPNEGO) or a trusted proxy, where it is switched on; otherwise 401 with reason 8.',
  successor: '/auth/token/sso/initiate',
  headers: {
    ...APPLICATION_KEY,
    Authorization: {
      description: '`Negotiate <ticket>`, which browsers in the domain attach by themselves.',
    },
  },
  outage: 'the database or the key table',
  extraHeaders: {
    'WWW-Authenticate': {
      description: '`Negotiate`, where it is switched on; on success with the confirmation for the client.',
      ...{ schema: text, example: 'Negotiate' },
    },
  },
});
