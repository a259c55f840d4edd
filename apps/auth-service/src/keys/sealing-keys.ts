import { hmacKeyList } from '@platform/access-tokens';
import { secret } from '@platform/service-defaults';
import type { z } from 'zod';
import { SecretBox, UNNAMED_KEY_ID } from './secret-box';
import type { SealingKey } from './secret-box';

const KEY_BYTES = 32;

/**
 * The variables of the AES-256-GCM keys that seal application secrets and private signing keys: one of the
 * two at least.
 */
export const sealingKeyShape = {
  /** `id:base64url,…`: the first one seals, all open. */
  SECRET_ENCRYPTION_KEYS: hmacKeyList()
    .refine(
      (keys) => keys.every((key) => key.secret.length === KEY_BYTES),
      'must hold keys of exactly 32 bytes',
    )
    .optional(),
  /** The same for one key, whose id is 1. */
  SECRET_ENCRYPTION_KEY: secret({ minBytes: KEY_BYTES })
    .refine((key) => key.length === KEY_BYTES, 'must hold exactly 32 bytes')
    .optional(),
};

type SealingKeyConfig = z.output<z.ZodObject<typeof sealingKeyShape>>;

/**
 * The configured keys, the one that seals first. The list comes before the single key, which it may repeat.
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

/** Adds what is wrong with the keys as a whole to the issues of a configuration. */
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
 * The box with the configured keys.
 * @throws {RangeError} without any: `checkSealingKeys` lets no such configuration pass
 */
export function secretBoxOf(config: SealingKeyConfig): SecretBox {
  const [first, ...others] = sealingKeys(config);
  if (first === undefined) throw new RangeError('no key is configured that seals secrets');
  return new SecretBox([first, ...others]);
}
