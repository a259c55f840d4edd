import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { KeyObject } from 'node:crypto';

const VERSION = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** The stored form of a secret is damaged, or was sealed with another key or for another purpose. */
export class SecretBoxError extends Error {
  override readonly name = 'SecretBoxError';
}

/** Encrypts a secret for storage: AES-256-GCM with a random nonce.
 *  @param key 32 bytes
 *  @param purpose bound to the box, so that a stored secret cannot be moved to another row, e.g. `application:billing-api` */
export function sealSecret(key: Buffer, purpose: string, secret: Buffer): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(purpose));
  const ciphertext = Buffer.concat([cipher.update(secret), cipher.final()]);
  return Buffer.concat([Buffer.of(VERSION), nonce, ciphertext, cipher.getAuthTag()]);
}

/** Decrypts what `sealSecret` made with the same key and purpose.
 *  @param key as a KeyObject where it is used often: importing the bytes costs more than the decryption
 *  @throws {SecretBoxError} for anything else */
export function openSecret(key: Buffer | KeyObject, purpose: string, box: Buffer): Buffer {
  if (box.length < 1 + NONCE_BYTES + TAG_BYTES || box[0] !== VERSION)
    throw new SecretBoxError(`the stored secret for ${purpose} has an unknown form`);
  const nonce = box.subarray(1, 1 + NONCE_BYTES);
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(purpose)).setAuthTag(box.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(box.subarray(1 + NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
  } catch (cause) {
    throw new SecretBoxError(`the stored secret for ${purpose} cannot be decrypted`, { cause });
  }
}
