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
  /** Folded names of the users for whom it may get tokens; null: anybody. */
  allowedSubjects: readonly string[] | null;
}

/** How far a request's timestamp may lie in the past or the future. */
const TRUST_MAX_AGE_SECONDS = 300;

/** How many live secrets count, so that one can be replaced without an outage. */
export const LIVE_SECRETS = 2;

/**
 * Takes the place of a secret that is missing, so that every proof costs the same. Random in each process,
 * and in no case a proof.
 */
const STAND_IN_SECRET: Buffer = randomBytes(32);

/** What a caller sent, and how to compute what each secret would have made. */
export interface Proof {
  given: Buffer;
  /** Left out: the secret itself. */
  expectedOf?: (secret: Buffer) => Buffer;
}

/**
 * Decides whether a proof counts. It compares the proof with two candidates, real or stand-in, by digest, and
 * stops at none. So its time tells nothing. A stand-in never counts.
 */
export function isProven(
  { given, expectedOf = (secret) => secret }: Proof,
  liveSecrets: readonly Buffer[],
): boolean {
  // An empty secret is none: everybody knows it.
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

/** The bytes of standard, padded base64; null for any other spelling, so that one code has one spelling. */
export function decodeAuthenticationCode(code: string): Buffer | null {
  const bytes = Buffer.from(code, 'base64');
  return bytes.toString('base64') === code ? bytes : null;
}

/** True when a request made at `timestamp` is at most 300 s from `now`, in either direction. */
export function isFreshTimestamp(timestamp: Date, now: Date): boolean {
  return Math.abs(now.getTime() - timestamp.getTime()) <= TRUST_MAX_AGE_SECONDS * 1_000;
}

/**
 * Whether its tokens may name the role of an administrator: with it a customer may do nearly all that an
 * internal partner may, which is not what somebody means who limits an application to customers. Null: no
 * application asks, so none is limited.
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

/** What a sealed application secret is bound to. */
export function applicationSecretPurpose(applicationKey: string): string {
  return `application:${applicationKey}`;
}

/** What to do to the secrets of one application. */
export interface SecretChange {
  /** The sealed secret of a new version. */
  add: Buffer | null;
  /**
   * Versions that expire, and when; 0: at once. Those that would expire earlier still do, unless `postpones`.
   */
  expire: { versions: readonly number[]; inSeconds: number; postpones?: boolean }[];
}

/** A secret that has not expired. */
export interface UnexpiredSecret {
  version: number;
  /** By the database's clock; null: it does not expire. */
  secondsLeft: number | null;
}
