import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { ALL_PERSONAS } from '@platform/personas';
import type { TokenFlow } from '../rejections/token-rejection';
import type { ApplicationEntity } from './application.entity';

/** A registered caller of the token endpoints, as the flows see it. */
export interface Application extends Pick<
  ApplicationEntity,
  'applicationKey' | 'allowedPersonas' | 'allowAdministrators' | 'allowRefresh' | 'confidential'
> {
  allowedFlows: readonly string[];
  /** Folded names of the users for whom the application may get tokens. Null: any user. */
  allowedSubjects: readonly string[] | null;
}

/** Maximum distance in seconds between a request's timestamp and now, in the past or the future. */
const TRUST_MAX_AGE_SECONDS = 300;

/**
 * Maximum secrets of an application that are accepted: the newest unexpired ones. Two allow a secret to be
 * replaced without an outage.
 */
export const LIVE_SECRETS = 2;

/**
 * Stands in for a missing secret, so that every proof takes the same time. Random per process, and never
 * accepted as a proof.
 */
const STAND_IN_SECRET: Buffer = randomBytes(32);

/** The caller's proof, and how to compute the expected value from each secret. */
export interface Proof {
  given: Buffer;
  /** Default: the secret itself. */
  expectedOf?: (secret: Buffer) => Buffer;
}

/**
 * Whether a proof matches a live secret. It always compares the digests of at least two candidates, using
 * stand-ins for missing secrets, and never stops early, so its time reveals nothing. A stand-in never counts.
 */
export function isProven(
  { given, expectedOf = (secret) => secret }: Proof,
  liveSecrets: readonly Buffer[],
): boolean {
  // An empty secret is skipped, because anyone could guess it.
  const secrets = liveSecrets.filter((secret) => secret.length > 0);
  const digest = sha256(given);
  let proven = false;
  for (let index = 0; index < Math.max(LIVE_SECRETS, secrets.length); index += 1) {
    const matches = timingSafeEqual(sha256(expectedOf(secrets[index] ?? STAND_IN_SECRET)), digest);
    proven = (matches && index < secrets.length) || proven;
  }
  return proven;
}

function sha256(bytes: Buffer): Buffer {
  return hash('sha256', bytes, 'buffer');
}

/**
 * Decodes standard, padded base64. Returns null for any other spelling, so that a code has only one spelling.
 */
export function decodeAuthenticationCode(code: string): Buffer | null {
  const bytes = Buffer.from(code, 'base64');
  return bytes.toString('base64') === code ? bytes : null;
}

/** Whether `timestamp` is at most 300 s from `now`, in either direction. */
export function isFreshTimestamp(timestamp: Date, now: Date): boolean {
  return Math.abs(now.getTime() - timestamp.getTime()) <= TRUST_MAX_AGE_SECONDS * 1_000;
}

/**
 * Whether the application's tokens may carry the customer administrator role. That role lets a customer do
 * nearly everything that an internal partner may, so an application limited to some personas does not get it
 * by default.
 * @param application null: the request names no application, so there is no limit
 */
export function mayHaveAdministrators(
  application: Pick<Application, 'allowedPersonas' | 'allowAdministrators'> | null,
): boolean {
  return (
    application === null || application.allowedPersonas === ALL_PERSONAS || application.allowAdministrators
  );
}

export function mayUseFlow(application: Application, flow: TokenFlow): boolean {
  return application.allowedFlows.includes(flow);
}

/** The purpose that a sealed application secret is bound to. */
export function applicationSecretPurpose(applicationKey: string): string {
  return `application:${applicationKey}`;
}

/** A change to the secrets of one application. */
export interface SecretChange {
  /** The sealed secret of a new version. */
  add: Buffer | null;
  /**
   * Versions to expire, and in how many seconds; 0 means at once. An earlier expiry stays, unless
   * `postpones`.
   */
  expire: { versions: readonly number[]; inSeconds: number; postpones?: boolean }[];
}

/** A secret that has not expired. */
export interface UnexpiredSecret {
  version: number;
  /** Seconds until expiry by the database's clock. Null: it does not expire. */
  secondsLeft: number | null;
}
