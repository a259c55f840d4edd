import { createCipheriv, createDecipheriv, createSecretKey, randomBytes } from 'node:crypto';
import type { KeyObject } from 'node:crypto';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Id of the key from releases with a single sealing key. Secrets that it seals do not contain its id, so that
 * those releases can open them.
 */
export const UNNAMED_KEY_ID = '1';

/** First byte of a secret sealed with the unnamed key. */
const UNNAMED = 1;
/** First byte of a secret that names its key. The length of the key id and the id follow. */
const NAMED = 2;

/** Thrown when a stored secret is damaged, or was sealed with an unknown key or for another purpose. */
export class SecretBoxError extends Error {
  override readonly name = 'SecretBoxError';
}

/** A key that seals secrets. */
export interface SealingKey {
  kid: string;
  /** 32 bytes. */
  secret: Buffer;
}

/** Seals secrets for storage: AES-256-GCM with a random nonce. */
export class SecretBox {
  /** The leading bytes of every secret sealed with the first key. */
  readonly currentPrefix: Buffer;
  private readonly sealing: KeyObject;
  private readonly keys: ReadonlyMap<string, KeyObject>;

  /** @param keys the first one seals; all of them open */
  constructor(keys: readonly [SealingKey, ...SealingKey[]]) {
    // Imported once, because an import costs more than a decryption.
    this.keys = new Map(keys.map(({ kid, secret }) => [kid, createSecretKey(secret)]));
    const [{ kid }] = keys;
    this.sealing = this.keys.get(kid)!;
    const id = Buffer.from(kid);
    this.currentPrefix =
      kid === UNNAMED_KEY_ID ? Buffer.of(UNNAMED) : Buffer.concat([Buffer.of(NAMED, id.length), id]);
  }

  /**
   * Encrypts a secret.
   * @param purpose bound to the secret, so that it cannot be moved to another row; e.g.
   * `application:billing-api`
   */
  seal(purpose: string, secret: Buffer): Buffer {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.sealing, nonce).setAAD(Buffer.from(purpose));
    const ciphertext = Buffer.concat([cipher.update(secret), cipher.final()]);
    return Buffer.concat([this.currentPrefix, nonce, ciphertext, cipher.getAuthTag()]);
  }

  /** Like `open`, but returns null for a secret that cannot be opened. */
  tryOpen(purpose: string, sealed: Buffer): Buffer | null {
    try {
      return this.open(purpose, sealed);
    } catch (error) {
      if (error instanceof SecretBoxError) return null;
      throw error;
    }
  }

  /**
   * Decrypts a secret that was sealed for the same purpose with any of the keys.
   * @throws {SecretBoxError} for anything else
   */
  open(purpose: string, sealed: Buffer): Buffer {
    const { kid, prefixBytes } = readPrefix(sealed);
    if (kid === null || sealed.length < prefixBytes + NONCE_BYTES + TAG_BYTES)
      throw new SecretBoxError(`the stored secret for ${purpose} has an unknown form`);
    const key = this.keys.get(kid);
    if (key === undefined)
      throw new SecretBoxError(`the stored secret for ${purpose} is sealed with the unknown key ${kid}`);
    const nonce = sealed.subarray(prefixBytes, prefixBytes + NONCE_BYTES);
    const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(Buffer.from(purpose)).setAuthTag(sealed.subarray(-TAG_BYTES));
    try {
      const ciphertext = sealed.subarray(prefixBytes + NONCE_BYTES, -TAG_BYTES);
      return Buffer.concat([decipher.update(ciphertext), decipher.final()]);
    } catch (cause) {
      throw new SecretBoxError(`the stored secret for ${purpose} cannot be decrypted`, { cause });
    }
  }
}

/** Reads the key id of a stored secret, null for an unknown form, and the length of the prefix in bytes. */
function readPrefix(sealed: Buffer): { kid: string | null; prefixBytes: number } {
  if (sealed[0] === UNNAMED) return { kid: UNNAMED_KEY_ID, prefixBytes: 1 };
  const idBytes = sealed[1] ?? 0;
  const kid = sealed[0] === NAMED ? sealed.subarray(2, 2 + idBytes).toString('latin1') : null;
  return { kid, prefixBytes: 2 + idBytes };
}
