import { createHmac } from 'node:crypto';
import type { AccessTokenFailure } from '../src/token/access-token-error';
import {
  CLAIMS,
  ec,
  encode,
  es256,
  es256Token,
  HMAC_SECRET,
  hs256,
  ISSUED_AT_SECONDS,
  ISSUER,
  LEGACY_ISSUER,
  LEGACY_SECRET,
  rs256,
  rs256Token,
  rsa,
  token,
} from './token-builder';

const DAY_SECONDS = 24 * 60 * 60;
const OTHER_SESSION = '6c2f1f0e-9f5c-4f0b-8a55-6f1f2f3f4f5f';
const GOOD = token();
const [head, body, signature] = GOOD.split('.') as [string, string, string];

function withoutClaim(name: string): Record<string, unknown> {
  return { [name]: undefined };
}

/** Signs the text with our own valid key, so that only the payload can be the reason for the refusal. */
const payloadText = (text: string): string => token({ claims: text });
export const headerText = (text: string): string => token({ header: text });
const claimsText = JSON.stringify(CLAIMS);

const publicPem = rsa.publicKey.export({ type: 'spki', format: 'pem' }) as string;
const publicDer = rsa.publicKey.export({ type: 'spki', format: 'der' });
const attackerJwk = ec.publicKey.export({ format: 'jwk' });

const LEGACY_CLAIMS = { iss: LEGACY_ISSUER, aud: 'legacy-audience' };

/** Tokens of attackers and of faulty issuers, each with the expected reason for its refusal. */
export const HOSTILE_TOKENS: Record<string, [AccessTokenFailure, string]> = {
  'an empty text': ['malformed', ''],
  'two dots only': ['malformed', '..'],
  'one part': ['malformed', head],
  'two parts': ['malformed', `${head}.${body}`],
  'four parts': ['malformed', `${GOOD}.${signature}`],
  'five parts (an encrypted token)': ['malformed', `${GOOD}.${signature}.${signature}`],
  'an empty signature': ['malformed', `${head}.${body}.`],
  'a truncated signature': ['bad-signature', `${head}.${body}.${cutTo(31, signature)}`],
  'a text of 1 MB': ['too-large', `${head}.${'A'.repeat(1_000_000)}.${signature}`],
  'one character over 16 KiB': ['too-large', 'A'.repeat(16 * 1024 + 1)],
  'alg none without signature': ['malformed', token({ header: { alg: 'none' }, signature: () => '' })],
  'alg none with a signature': ['unsupported-header', token({ header: { alg: 'none' } })],
  'alg None, nOnE': ['unsupported-header', token({ header: { alg: 'nOnE' } })],
  'alg hs256': ['unsupported-header', token({ header: { alg: 'hs256' } })],
  'alg HS512': ['unsupported-header', token({ header: { alg: 'HS512' } })],
  'alg PS256 with the RSA key': ['unsupported-header', rs256Token({ header: { alg: 'PS256' } })],
  'alg missing': ['unsupported-header', token({ header: { alg: undefined } })],
  'alg as an array': ['unsupported-header', token({ header: { alg: ['HS256'] } })],
  'HS256 keyed with the RSA public key in PEM': [
    'unknown-key',
    token({ header: { kid: 'rs-1' }, signature: hs256(Buffer.from(publicPem)) }),
  ],
  'HS256 keyed with the RSA public key in DER': [
    'unknown-key',
    token({ header: { kid: 'rs-1' }, signature: hs256(publicDer) }),
  ],
  'HS256 under an unknown kid, keyed with the public key': [
    'unknown-key',
    token({ header: { kid: 'rs-2' }, signature: hs256(Buffer.from(publicPem)) }),
  ],
  'RS256 naming the symmetric key': ['unknown-key', rs256Token({ header: { kid: 'hs-1' } })],
  'ES256 naming the RSA key': ['unknown-key', es256Token({ header: { kid: 'rs-1' } })],
  'RS256 header over an ES256 signature': ['bad-signature', rs256Token({ signature: es256() })],
  'ES256 header over an RS256 signature': ['bad-signature', es256Token({ signature: rs256() })],
  'another HMAC key': ['bad-signature', token({ signature: hs256(Buffer.alloc(32, 0x7a)) })],
  'the empty HMAC key': ['bad-signature', token({ signature: hs256(Buffer.alloc(0)) })],
  'an HMAC cut to 16 bytes': ['bad-signature', token({ signature: (text) => cutTo(16, hs256()(text)) })],
  'an HMAC with SHA-512': [
    'bad-signature',
    token({ signature: (text) => createHmac('sha512', HMAC_SECRET).update(text).digest('base64url') }),
  ],
  'kid missing': ['unknown-key', token({ header: { kid: undefined } })],
  'kid as a path': ['unsupported-header', token({ header: { kid: '../../../../dev/null' } })],
  'kid as SQL': ['unsupported-header', token({ header: { kid: "x' UNION SELECT 'a" } })],
  'kid as a command': ['unsupported-header', token({ header: { kid: '|/bin/id' } })],
  'kid with a line feed': ['unsupported-header', token({ header: { kid: 'hs-1\n' } })],
  'kid empty': ['unsupported-header', token({ header: { kid: '' } })],
  'kid over 64 characters': ['unsupported-header', token({ header: { kid: 'k'.repeat(65) } })],
  'kid as a number': ['unsupported-header', token({ header: { kid: 1 } })],
  'kid as null': ['unsupported-header', token({ header: { kid: null } })],
  'kid __proto__': ['unknown-key', token({ header: { kid: '__proto__' } })],
  'kid constructor': ['unknown-key', token({ header: { kid: 'constructor' } })],
  'jku of an attacker': [
    'unknown-key',
    es256Token({ header: { kid: 'evil', jku: 'https://evil.test/jwks.json' } }),
  ],
  'x5u of an attacker': [
    'unknown-key',
    rs256Token({ header: { kid: 'evil', x5u: 'https://evil.test/cert.pem' } }),
  ],
  'an embedded jwk': [
    'bad-signature',
    es256Token({ header: { kid: 'es-1', jwk: attackerJwk }, signature: () => encode(Buffer.alloc(64, 1)) }),
  ],
  'an embedded symmetric jwk': [
    'bad-signature',
    token({
      header: { jwk: { kty: 'oct', k: encode('attacker-attacker-attacker-12345') } },
      signature: hs256(Buffer.from('attacker-attacker-attacker-12345')),
    }),
  ],
  'an embedded x5c': [
    'unknown-key',
    rs256Token({ header: { kid: 'evil', x5c: [publicDer.toString('base64')] } }),
  ],
  'crit with an unknown extension': ['unsupported-header', token({ header: { crit: ['exp'], exp: 1 } })],
  'crit with b64': ['unsupported-header', token({ header: { crit: ['b64'], b64: false } })],
  'an empty crit': ['unsupported-header', token({ header: { crit: [] } })],
  'a psychic signature (r = s = 0)': [
    'bad-signature',
    es256Token({ signature: () => encode(Buffer.alloc(64)) }),
  ],
  'an empty ECDSA signature': ['malformed', es256Token({ signature: () => '' })],
  'an ECDSA signature in DER': ['bad-signature', es256Token({ signature: es256(ec.privateKey, 'der') })],
  'a psychic signature in DER': [
    'bad-signature',
    es256Token({ signature: () => encode(Buffer.from('3006020100020100', 'hex')) }),
  ],
  'an all-zero RSA signature': ['bad-signature', rs256Token({ signature: () => encode(Buffer.alloc(256)) })],
  'an RSA signature of 1': [
    'bad-signature',
    rs256Token({ signature: () => encode(Buffer.concat([Buffer.alloc(255), Buffer.from([1])])) }),
  ],
  'padding in base64url': ['malformed', `${head}.${body}.${signature}=`],
  'the other base64 alphabet': ['malformed', `${head}.${body}.${'+/'.repeat(21)}A`],
  'stray bits in the last character': ['malformed', `${head}.${body}.${withStrayBits(signature)}`],
  'a space inside': ['malformed', `${head}. ${body}.${signature}`],
  'a line feed at the end': ['malformed', `${GOOD}\n`],
  'a NUL inside': ['malformed', `${head}\0.${body}.${signature}`],
  'characters beyond ASCII': ['malformed', `${head}.${body}.${'é'.repeat(43)}`],
  'a payload that is an array': ['malformed', payloadText('[]')],
  'a payload that is a string': ['malformed', payloadText('"x"')],
  'a payload that is null': ['malformed', payloadText('null')],
  'a payload that is not JSON': ['malformed', payloadText('{"iss":')],
  'a payload with a comment': ['malformed', payloadText(`${claimsText}//`)],
  'a payload with a byte order mark': ['malformed', payloadText(`\uFEFF${claimsText}`)],
  'a payload that is not UTF-8': [
    'malformed',
    (() => {
      const signed = `${head}.${encode(Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xff]), Buffer.from('"}')]))}`;
      return `${signed}.${hs256()(signed)}`;
    })(),
  ],
  'a payload nested 10,000 deep': [
    'malformed',
    payloadText(`{"a":${'['.repeat(5_000)}${']'.repeat(5_000)}}`),
  ],
  'a header that is an array': ['malformed', headerText('["HS256"]')],
  'a header with two alg': [
    'malformed',
    headerText('{"alg":"none","alg":"HS256","kid":"hs-1","typ":"at+jwt"}'),
  ],
  'a header with two alg, one escaped': [
    'malformed',
    headerText('{"alg":"none","\\u0061lg":"HS256","kid":"hs-1","typ":"at+jwt"}'),
  ],
  'two personas claims': ['malformed', payloadText(claimsText.replace('{', '{"personas":1,'))],
  'two sub claims, the second escaped': [
    'malformed',
    payloadText(claimsText.replace('}', ',"\\u0073ub":"userid:1"}')),
  ],
  'duplicates inside a nested claim': [
    'malformed',
    payloadText(claimsText.replace('{', '{"x":{"a":1,"a":2},')),
  ],
  'typ missing': ['wrong-type', token({ header: { typ: undefined } })],
  'typ JWT': ['wrong-type', token({ header: { typ: 'JWT' } })],
  'typ of a refresh token': ['wrong-type', token({ header: { typ: 'rt+jwt' } })],
  'typ in upper case': ['wrong-type', token({ header: { typ: 'AT+JWT' } })],
  'typ as a number': ['unsupported-header', token({ header: { typ: 1 } })],
  'another issuer': ['unknown-issuer', token({ claims: { iss: 'https://evil.test' } })],
  'our issuer with a slash': ['unknown-issuer', token({ claims: { iss: `${ISSUER}/` } })],
  'issuer missing': ['unknown-issuer', token({ claims: withoutClaim('iss') })],
  "a legacy issuer's claim under our key": [
    'unknown-key',
    token({ header: { typ: undefined }, claims: { iss: LEGACY_ISSUER } }),
  ],
  "our issuer's claim under a legacy key": [
    'unknown-key',
    token({ header: { kid: undefined }, signature: hs256(LEGACY_SECRET) }),
  ],
  'a legacy issuer with our typ': [
    'wrong-type',
    token({ header: { kid: undefined }, claims: { iss: LEGACY_ISSUER }, signature: hs256(LEGACY_SECRET) }),
  ],
  'a legacy issuer with RS256': [
    'unsupported-header',
    rs256Token({ header: { typ: undefined }, claims: { iss: LEGACY_ISSUER } }),
  ],
  'another audience': ['wrong-audience', token({ claims: { aud: 'other' } })],
  'audience missing': ['invalid-claims', token({ claims: withoutClaim('aud') })],
  'other audiences': ['wrong-audience', token({ claims: { aud: ['other', 'platform2'] } })],
  'expired beyond the tolerance': [
    'expired',
    token({
      claims: { iat: ISSUED_AT_SECONDS - DAY_SECONDS - 31, nbf: undefined, exp: ISSUED_AT_SECONDS - 30 },
    }),
  ],
  'iat in the future': ['not-yet-valid', token({ claims: { iat: ISSUED_AT_SECONDS + 31 } })],
  'nbf in the future': ['not-yet-valid', token({ claims: { nbf: ISSUED_AT_SECONDS + 31 } })],
  'a life of more than 366 days': [
    'invalid-claims',
    token({ claims: { exp: ISSUED_AT_SECONDS + 366 * DAY_SECONDS + 1 } }),
  ],
  'a life of ten years, nearly over': [
    'invalid-claims',
    token({ claims: { iat: ISSUED_AT_SECONDS - 3_650 * DAY_SECONDS, nbf: undefined } }),
  ],
  "a legacy issuer's token of ten years": [
    'invalid-claims',
    token({
      header: { kid: undefined, typ: undefined },
      claims: { ...LEGACY_CLAIMS, exp: ISSUED_AT_SECONDS + 3_650 * DAY_SECONDS },
      signature: hs256(LEGACY_SECRET),
    }),
  ],
  'an auth_time in the future': ['invalid-claims', token({ claims: { auth_time: ISSUED_AT_SECONDS + 31 } })],
  "a legacy issuer's auth_time in the future": [
    'invalid-claims',
    token({
      header: { kid: undefined, typ: undefined },
      claims: { ...LEGACY_CLAIMS, auth_time: ISSUED_AT_SECONDS + 31 },
      signature: hs256(LEGACY_SECRET),
    }),
  ],
  ...Object.fromEntries(
    ['jti', 'sub', 'client_id'].map((name) => [
      `a NUL in ${name}`,
      ['invalid-claims', token({ claims: { [name]: 'a\u0000b' } })],
    ]),
  ),
  'exp before iat': ['invalid-claims', token({ claims: { exp: ISSUED_AT_SECONDS - 10 } })],
  'exp as a string': ['invalid-claims', token({ claims: { exp: '9999999999' } })],
  'exp as a fraction': ['invalid-claims', token({ claims: { exp: ISSUED_AT_SECONDS + 10.5 } })],
  'exp beyond every number': ['invalid-claims', payloadText(claimsText.replace(/"exp":\d+/, '"exp":1e400'))],
  'exp negative': ['invalid-claims', token({ claims: { exp: -1 } })],
  'exp null': ['invalid-claims', token({ claims: { exp: null } })],
  'iat as a string': ['invalid-claims', token({ claims: { iat: '1' } })],
  'jti as a number': ['invalid-claims', token({ claims: { jti: 1 } })],
  'jti empty': ['invalid-claims', token({ claims: { jti: '' } })],
  'personas with an unknown bit': ['invalid-claims', token({ claims: { personas: 32 } })],
  'personas as a string': ['invalid-claims', token({ claims: { personas: '1' } })],
  'personas through the prototype': [
    'invalid-claims',
    payloadText(claimsText.replace('"personas":2', '"__proto__":{"personas":1}')),
  ],
  'a person without its number': ['invalid-claims', token({ claims: { personId: null } })],
  'an internal user without its number': [
    'invalid-claims',
    token({ claims: { identityType: 'internal-legacy' } }),
  ],
  'another identity type': ['invalid-claims', token({ claims: { identityType: 'root' } })],
  'facilities as text': ['invalid-claims', token({ claims: { facilities: '501' } })],
  ...Object.fromEntries(
    Object.entries({
      'as text': '28',
      'as a number': 2,
      'as an object': { 501: 2, 502: 8 },
      null: null,
      'shorter than the facilities': [2],
      'longer than the facilities': [2, 8, 8],
      'with a text': [2, '8'],
      'with null': [2, null],
      'with a fraction': [2, 0.5],
      'with a negative number': [2, -1],
      'with an unknown bit': [2, 32],
    }).map(([title, facilityPersonas]) => [
      `facilityPersonas ${title}`,
      ['invalid-claims', token({ claims: { facilityPersonas } })],
    ]),
  ),
  'the sid of another session under the old signature': [
    'bad-signature',
    `${head}.${encode(JSON.stringify({ ...CLAIMS, sid: OTHER_SESSION }))}.${signature}`,
  ],
  ...Object.fromEntries(
    Object.entries({
      'as a number': 1,
      'as a list': [CLAIMS.sid],
      'as an object': { sid: CLAIMS.sid },
      'as true': true,
      empty: '',
      'that is no UUID': 'session-1',
      'in upper case': CLAIMS.sid.toUpperCase(),
      'in braces': `{${CLAIMS.sid}}`,
      'with a line feed': `${CLAIMS.sid}\n`,
      'of 10,000 characters': CLAIMS.sid.repeat(278),
    }).map(([title, sid]) => [`sid ${title}`, ['invalid-claims', token({ claims: { sid } })]]),
  ),
  ...Object.fromEntries(
    ['exp', 'iat', 'jti', 'sub', 'auth_time', 'identityType', 'personas'].map((name) => [
      `${name} missing`,
      ['invalid-claims', token({ claims: withoutClaim(name) })],
    ]),
  ),
};

/**
 * Returns a different text that decodes leniently to the same bytes: the last character of 32 bytes carries
 * two unused bits.
 */
function withStrayBits(text: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const last = alphabet.indexOf(text.at(-1) as string);
  return text.slice(0, -1) + (alphabet[last ^ 1] as string);
}

function cutTo(bytes: number, text: string): string {
  return encode(Buffer.from(text, 'base64url').subarray(0, bytes));
}
