import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { isIPv4 } from 'node:net';

/** A certificate and its key, in PEM. */
export interface Certificate {
  cert: string;
  key: string;
}

const DAY_MS = 24 * 60 * 60 * 1_000;
const OID = {
  ecdsaWithSha256: [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02],
  commonName: [0x55, 0x04, 0x03],
  subjectAltName: [0x55, 0x1d, 0x11],
} as const;
const TAG = { integer: 2, bits: 3, octets: 4, oid: 6, utf8: 12, sequence: 48, set: 49, utcTime: 23 } as const;

/**
 * Returns a self-signed P-256 certificate for the given IPv4 addresses, valid for a day. Node cannot create
 * certificates, and not every machine has `openssl`. Source of the structure: RFC 5280, section 4.1.
 */
export function selfSignedCertificate(addresses: readonly string[]): Certificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const algorithm = sequence(der(TAG.oid, OID.ecdsaWithSha256));
  const name = sequence(
    der(TAG.set, sequence(der(TAG.oid, OID.commonName), der(TAG.utf8, 'auth-service test'))),
  );
  const toBeSigned = sequence(
    der(0xa0, der(TAG.integer, [2])),
    // The top bit is zero, so the serial number is positive.
    der(TAG.integer, [0x01, ...randomBytes(8)]),
    algorithm,
    name,
    validity(),
    name,
    publicKey.export({ format: 'der', type: 'spki' }),
    der(0xa3, sequence(subjectAltNames(addresses))),
  );
  const signature = sign('sha256', toBeSigned, privateKey);
  const certificate = sequence(toBeSigned, algorithm, der(TAG.bits, [0], signature));
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${certificate.toString('base64')}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ format: 'pem', type: 'pkcs8' }) as string,
  };
}

function validity(): Buffer {
  const now = Date.now();
  const times = [now - DAY_MS, now + DAY_MS].map((ms) =>
    new Date(ms).toISOString().replace(/^20|[-:T]|\.\d+/g, ''),
  );
  return sequence(...times.map((time) => der(TAG.utcTime, time)));
}

function subjectAltNames(addresses: readonly string[]): Buffer {
  const names = addresses.map((address) => {
    if (!isIPv4(address)) throw new RangeError(`${address} is not an IPv4 address`);
    return der(0x87, address.split('.').map(Number));
  });
  return sequence(der(TAG.oid, OID.subjectAltName), der(TAG.octets, sequence(...names)));
}

function sequence(...parts: Buffer[]): Buffer {
  return der(TAG.sequence, ...parts);
}

function der(tag: number, ...parts: readonly (Buffer | readonly number[] | string)[]): Buffer {
  const content = Buffer.concat(
    parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.from(part))),
  );
  const { length } = content;
  const lengthBytes =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...lengthBytes]), content]);
}
