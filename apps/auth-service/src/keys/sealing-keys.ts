import { hmacKeyList } from '@platform/access-tokens';
import { secret } from '@platform/service-defaults';
import type { z } from 'zod';
import { SecretBox, UNNAMED_KEY_ID } from './secret-box';
import type { SealingKey } from './secret-box';

const KEY_BYTES = 32;

/**
 * Environment variables of the AES-256-GCM keys that seal application secrets and private signing keys. At
 * least one of them is required.
 */
export const sealingKeyShape = {
  /** `id:base64url,…`. The first key seals; all of them open. */
  SECRET_ENCRYPTION_KEYS: hmacKeyList()
    .refine(
      (keys) => keys.every((key) => key.secret.length === KEY_BYTES),
      'must hold keys of exactly 32 bytes',
    )
    .optional(),
  /** A single key, whose id is 1. */
  SECRET_ENCRYPTION_KEY: secret({ minBytes: KEY_BYTES })
    .refine((key) => key.length === KEY_BYTES, 'must hold exactly 32 bytes')
    .optional(),
};

type SealingKeyConfig = z.output<z.ZodObject<typeof sealingKeyShape>>;

/**
 * Returns the configured keys, starting with the one that seals. The keys of the list come before the single
 * key, which may also be in the list.
 */
export function sealingKeys(config: SealingKeyConfig): SealingKey[] {
  const { SECRET_ENCRYPTION_KEYS: keys = [], SECRET_ENCRYPTION_KEY: single } = config;
  if (
    single === undefined ||
    keys.some(({ kid, secret: key }) => kid === UNNAMED_KEY_ID && key.equals(single))
  )
    return [...keys];
  return [...keys, { kid: UNNAMED_KEY_ID, secret: single }];
}

/** Validates the keys as a whole and adds any issues to those of the configuration. */
export function checkSealingKeys(config: SealingKeyConfig, context: z.RefinementCtx): void {
  const keys = sealingKeys(config);
  const path = ['SECRET_ENCRYPTION_KEYS'];
  if (keys.length === 0)
    context.addIssue({ code: 'custom', path, message: 'or SECRET_ENCRYPTION_KEY is required' });
  if (new Set(keys.map(({ kid }) => kid)).size < keys.length) {
    const message = `must not hold another key under the id ${UNNAMED_KEY_ID} than SECRET_ENCRYPTION_KEY`;
    context.addIssue({ code: 'custom', path, message });
  }
}

/**
 * Creates the secret box with the configured keys.
 * @throws {RangeError} if there are none, which `checkSealingKeys` rules out
 */
export function secretBoxOf(config: SealingKeyConfig): SecretBox {
  const [first, ...others] = sealingKeys(config);
  if (first === undefined) throw new RangeError('no sealing key is configured');
  return new SecretBox([first, ...others]);
}
