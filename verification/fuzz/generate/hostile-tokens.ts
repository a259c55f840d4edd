import { createHmac, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import fc from 'fast-check';
import type { Random } from '#platform/random.ts';
import type { Forge } from '../fixtures.ts';

type Json = Readonly<Record<string, unknown>>;
type Maker = (forge: Forge, random: Random) => string;

const encode = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
const hmac = (key: Buffer | string, text: string, hash = 'sha256'): string =>
  createHmac(hash, key).update(text).digest('base64url');
const nowSeconds = (): number => Math.floor(Date.now() / 1_000);
const attacker = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const attackerJwk = attacker.publicKey.export({ format: 'jwk' });

function claims(forge: Forge, random: Random, changes: Json = {}): Json {
  const now = nowSeconds();
  return {
    iss: forge.issuer,
    aud: forge.audience,
    sub: 'userid:9001',
    jti: random.draw(fc.uuid()),
    iat: now,
    nbf: now,
    exp: now + 86_400,
    auth_time: now,
    client_id: 'demo-backend',
    identityType: 'internal-legacy',
    userId: 9001,
    name: 'Ivy Internal',
    personas: 1,
    roles: [],
    facilities: [],
    groups: [],
    ...changes,
  };
}

/** Signs with the services' own key, so that only the header or the claims are wrong. */
const signed = (header: Json | string, payload: Json | string, forge: Forge): string => {
  const text = `${encode(header)}.${encode(payload)}`;
  return `${text}.${hmac(forge.hmacKey, text)}`;
};
const header = (forge: Forge, changes: Json = {}): Json => ({
  alg: 'HS256',
  kid: forge.hmacKeyId,
  typ: 'at+jwt',
  ...changes,
});

const wrongClaims =
  (changes: (now: number) => Json): Maker =>
  (forge, random) =>
    signed(header(forge), claims(forge, random, changes(nowSeconds())), forge);
const wrongHeader =
  (changes: Json): Maker =>
  (forge, random) =>
    signed(header(forge, changes), claims(forge, random), forge);
/** A token signed with the attacker's key. */
const forged =
  (changes: Json, key: Buffer | string = 'attacker'): Maker =>
  (forge, random) => {
    const text = `${encode(header(forge, changes))}.${encode(claims(forge, random))}`;
    return `${text}.${hmac(key, text)}`;
  };
const unsigned =
  (alg: unknown): Maker =>
  (forge, random) =>
    `${encode(header(forge, { alg }))}.${encode(claims(forge, random))}.`;

/** Key confusion: an HMAC whose secret is a public key. */
const confusion =
  (form: 'pem' | 'der' | 'jwk' | 'x'): Maker =>
  (forge, random) => {
    const [jwk] = forge.publicKeys;
    if (jwk === undefined) return 'a.b.c';
    const key = createPublicKey({ key: jwk, format: 'jwk' });
    const secret = {
      pem: key.export({ format: 'pem', type: 'spki' }),
      der: key.export({ format: 'der', type: 'spki' }),
      jwk: JSON.stringify(jwk),
      x: Buffer.from(jwk['x'] ?? '', 'base64url'),
    }[form];
    return forged({ kid: random.pick([jwk.kid, forge.hmacKeyId]) }, secret)(forge, random);
  };

const elliptic =
  (changes: (forge: Forge) => Json): Maker =>
  (forge, random) => {
    const text = `${encode(header(forge, { alg: 'ES256', kid: forge.publicKeys[0]?.kid, ...changes(forge) }))}.${encode(claims(forge, random))}`;
    return `${text}.${sign('sha256', Buffer.from(text), { key: attacker.privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
  };

/** The genuine ES256 token with a different signature. */
const resigned =
  (make: (signature: Buffer) => Buffer): Maker =>
  ({ asymmetricToken }) => {
    const [head = '', payload = '', signature = ''] = asymmetricToken.split('.');
    return `${head}.${payload}.${make(Buffer.from(signature, 'base64url')).toString('base64url')}`;
  };

function der(signature: Buffer): Buffer {
  const part = (bytes: Buffer): Buffer => {
    const trimmed = bytes.subarray(bytes.findIndex((byte) => byte !== 0));
    const value = (trimmed[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.from([0]), trimmed]) : trimmed;
    return Buffer.concat([Buffer.from([2, value.length]), value]);
  };
  const content = Buffer.concat([part(signature.subarray(0, 32)), part(signature.subarray(32))]);
  return Buffer.concat([Buffer.from([0x30, content.length]), content]);
}
const CURVE_ORDER = Buffer.from('ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551', 'hex');

const genuine: Maker = (forge, random) => signed(header(forge), claims(forge, random), forge);

/** Makers of tokens that must be refused, by name. */
export const HOSTILE_TOKENS: Readonly<Record<string, Maker>> = {
  'alg none': unsigned('none'),
  'alg None': unsigned('None'),
  'alg NONE': unsigned('NONE'),
  'alg null': unsigned(null),
  'alg missing': unsigned(undefined),
  'alg list': unsigned(['HS256']),
  'alg object': unsigned({ toString: 'HS256' }),
  'alg HS256, no signature': unsigned('HS256'),
  'alg HS512': (forge, random) => {
    const text = `${encode(header(forge, { alg: 'HS512' }))}.${encode(claims(forge, random))}`;
    return `${text}.${hmac(forge.hmacKey, text, 'sha512')}`;
  },
  'alg hs256': wrongHeader({ alg: 'hs256' }),
  'alg ES256 with the HMAC key': wrongHeader({ alg: 'ES256' }),
  'alg RS256 with the HMAC key': wrongHeader({ alg: 'RS256' }),
  'key confusion, PEM': confusion('pem'),
  'key confusion, DER': confusion('der'),
  'key confusion, JWK': confusion('jwk'),
  'key confusion, coordinate': confusion('x'),
  'empty HMAC key': forged({}, ''),
  'zero HMAC key': forged({}, Buffer.alloc(32)),
  'kid /dev/null': forged({ kid: '../../../../dev/null' }, ''),
  'kid SQL': forged({ kid: "x' UNION SELECT 'attacker' --" }),
  'kid command': forged({ kid: 'x|id' }),
  'kid URL': forged({ kid: 'http://evil.example/key' }),
  'kid __proto__': forged({ kid: '__proto__' }, ''),
  'kid constructor': forged({ kid: 'constructor' }, ''),
  'kid number': wrongHeader({ kid: 1 }),
  'kid list': wrongHeader({ kid: ['access-development'] }),
  'kid missing': forged({ kid: undefined }),
  jku: elliptic(() => ({ jku: 'http://127.0.0.1:9/jwks.json' })),
  x5u: elliptic(() => ({ x5u: 'http://127.0.0.1:9/cert.pem' })),
  jwk: elliptic(() => ({ jwk: attackerJwk })),
  'jwk, unknown kid': elliptic(() => ({ jwk: attackerJwk, kid: 'attacker' })),
  x5c: elliptic(() => ({
    x5c: [attacker.publicKey.export({ format: 'der', type: 'spki' }).toString('base64')],
  })),
  'foreign ES256 key': elliptic(() => ({})),
  'psychic signature': resigned(() => Buffer.alloc(64)),
  'psychic signature, r = s = n': resigned(() => Buffer.concat([CURVE_ORDER, CURVE_ORDER])),
  'psychic signature, short': resigned(() => Buffer.from('3006020100020100', 'hex')),
  'DER signature': resigned(der),
  'cut signature': resigned((signature) => signature.subarray(0, 63)),
  'longer signature': resigned((signature) => Buffer.concat([signature, Buffer.alloc(1)])),
  'wrong issuer': wrongClaims(() => ({ iss: 'http://evil.example' })),
  'issuer list': (forge, random) => wrongClaims(() => ({ iss: [forge.issuer] }))(forge, random),
  'wrong audience': wrongClaims(() => ({ aud: 'another-platform' })),
  'audience missing': wrongClaims(() => ({ aud: undefined })),
  'typ rt+jwt': wrongHeader({ typ: 'rt+jwt' }),
  'typ JWT': wrongHeader({ typ: 'JWT' }),
  'typ missing': wrongHeader({ typ: undefined }),
  expired: wrongClaims((now) => ({ exp: now - 60, iat: now - 90_000, nbf: now - 90_000 })),
  'exp missing': wrongClaims(() => ({ exp: undefined })),
  'exp text': wrongClaims((now) => ({ exp: String(now + 100) })),
  'exp beyond time': wrongClaims(() => ({ exp: 1e300 })),
  'exp negative': wrongClaims(() => ({ exp: -1 })),
  'iat in the future': wrongClaims((now) => ({ iat: now + 3_600 })),
  'nbf in the future': wrongClaims((now) => ({ nbf: now + 3_600 })),
  'iat missing': wrongClaims(() => ({ iat: undefined })),
  'jti missing': wrongClaims(() => ({ jti: undefined })),
  'sub missing': wrongClaims(() => ({ sub: undefined })),
  'personas text': wrongClaims(() => ({ personas: '1' })),
  'personas missing': wrongClaims(() => ({ personas: undefined })),
  'duplicate claims': (forge, random) =>
    signed(header(forge), JSON.stringify(claims(forge, random)).replace('{', '{"personas":0,'), forge),
  'duplicate header': (forge, random) =>
    signed(JSON.stringify(header(forge)).replace('{', '{"alg":"none",'), claims(forge, random), forge),
  'duplicate after escaping': (forge, random) =>
    signed(header(forge), JSON.stringify(claims(forge, random)).replace('{', '{"\\u0070ersonas":0,'), forge),
  'payload not an object': (forge) => signed(header(forge), '[]', forge),
  'payload null': (forge) => signed(header(forge), 'null', forge),
  'payload not JSON': (forge) => signed(header(forge), '{"iss":', forge),
  'payload deep': (forge) => signed(header(forge), '['.repeat(2_000), forge),
  crit: wrongHeader({ crit: ['exp'], exp: 1 }),
  'crit unknown': wrongHeader({ crit: ['http://evil.example/x'], 'http://evil.example/x': true }),
  'crit b64': wrongHeader({ crit: ['b64'], b64: false }),
  'padded base64url': (forge, random) => `${genuine(forge, random)}=`,
  'standard base64': (forge, random) => genuine(forge, random).replace('.', '+.'),
  'other trailing bits': (forge, random) => {
    const token = genuine(forge, random);
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    return `${token.slice(0, -1)}${alphabet[alphabet.indexOf(token.at(-1) ?? 'A') ^ 1] ?? 'A'}`;
  },
  'white space within': (forge, random) => genuine(forge, random).replace('.', '. '),
  'two parts': (forge, random) => genuine(forge, random).split('.').slice(0, 2).join('.'),
  'four parts': (forge, random) => `${genuine(forge, random)}.x`,
  'five parts (JWE)': (forge) =>
    `${encode({ alg: 'dir', enc: 'A256GCM', kid: forge.hmacKeyId })}..AAAA.AAAA.AAAA`,
  'two tokens': (forge, random) => `${genuine(forge, random)},${genuine(forge, random)}`,
  dots: () => '...',
  empty: () => '',
  '17 KiB': (forge, random) => wrongClaims(() => ({ groups: ['x'.repeat(12_500)] }))(forge, random),
  '1 MB': (forge, random) => wrongClaims(() => ({ groups: ['x'.repeat(750_000)] }))(forge, random),
};
