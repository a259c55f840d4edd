import { hash, timingSafeEqual } from 'node:crypto';
import type { TokenFlow } from '../rejections/token-rejection';
import type { ApplicationEntity } from './application.entity';

/** A registered caller of the token endpoints, as the flows see it. */
export interface Application extends Pick<
  ApplicationEntity,
  'applicationKey' | 'allowedPersonas' | 'allowRefresh'
> {
  allowedFlows: readonly string[];
  /** Folded names of the users for whom it may get tokens; null: anybody. */
  allowedSubjects: readonly string[] | null;
}

/** How far a request's timestamp may lie in the past or the future. */
const TRUST_MAX_AGE_SECONDS = 300;

/** Stands in for the secrets of an unknown application, so that being unknown takes as long as being wrong. */
const DUMMY_SECRETS: readonly Buffer[] = [Buffer.alloc(44, 'dummy')];

/** The secrets to compare with: those of the application, or dummies of equal cost when it has none or does not exist. */
export function comparableSecrets(secrets: readonly Buffer[] | null): readonly Buffer[] {
  return secrets !== null && secrets.length > 0 ? secrets : DUMMY_SECRETS;
}

/** True when one of `candidates` equals `given`. Every candidate is compared, and by digest, so that the time depends
 *  neither on which one matches, nor on where they differ, nor on their lengths. */
export function matchesAny(given: Buffer, candidates: readonly Buffer[]): boolean {
  const digest = sha256(given);
  return candidates.reduce((found, candidate) => timingSafeEqual(sha256(candidate), digest) || found, false);
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

export function mayUseFlow(application: Application, flow: TokenFlow): boolean {
  return application.allowedFlows.includes(flow);
}

/** How many live secrets count, so that one can be replaced without an outage. */
export const LIVE_SECRETS = 2;

/** What a sealed application secret is bound to. */
export function applicationSecretPurpose(applicationKey: string): string {
  return `application:${applicationKey}`;
}

/** What to do to the secrets of one application. */
export interface SecretChange {
  /** The sealed secret of a new version. */
  add: Buffer | null;
  /** Versions that expire, and when; 0: at once. */
  expire: { versions: readonly number[]; inSeconds: number }[];
}
