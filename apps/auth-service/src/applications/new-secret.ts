import { randomBytes } from 'node:crypto';
import { sealSecret } from '../keys/secret-box';
import { applicationSecretPurpose } from './application-secret';

/** A fresh shared secret: the text to hand over once, and the form that is stored. */
export interface NewSecret {
  sharedSecret: string;
  sealed: Buffer;
}

const BYTES = 32;

/** Makes a random shared secret. @param encryptionKey AES-256-GCM, 32 bytes */
export function newSharedSecret(applicationKey: string, encryptionKey: Buffer): NewSecret {
  const sharedSecret = randomBytes(BYTES).toString('base64url');
  const purpose = applicationSecretPurpose(applicationKey);
  return { sharedSecret, sealed: sealSecret(encryptionKey, purpose, Buffer.from(sharedSecret)) };
}
