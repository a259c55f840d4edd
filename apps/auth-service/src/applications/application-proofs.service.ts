import { randomBytes } from 'node:crypto';
import { Inject, Injectable, Logger } from '@nestjs/common';
import { CLOCK, Metrics } from '@platform/service-defaults';
import { MINUTE_MS } from '@platform/time';
import type { Clock } from '@platform/time';
import { SecretBox } from '../keys/secret-box';
import { LIVE_SECRETS, applicationSecretPurpose, isProven } from './application';
import type { Application, Proof } from './application';
import type { EnabledApplication } from './applications.repository';

const STAND_IN_PURPOSE = 'stand-in';
/**
 * One secret is complained about once in this time: anybody can have a secret opened by naming its
 * application.
 */
const COMPLAINT_INTERVAL_MS = 10 * MINUTE_MS;

/**
 * Judges what applications send to prove themselves. A secret that cannot be opened counts as none; the
 * others of its application count.
 */
@Injectable()
export class ApplicationProofs {
  private readonly logger = new Logger('ApplicationProofs');
  /** Requests that share a look-up share its row, and the secrets that were opened of it. */
  private readonly opened = new WeakMap<EnabledApplication, readonly Buffer[]>();
  /** Opened where a secret is missing, so that an unknown application costs what a known one does. */
  private readonly sealedStandIn: Buffer;
  private readonly complainedAtMs = new Map<string, number>();
  private readonly unreadable;

  constructor(
    private readonly secretBox: SecretBox,
    @Inject(CLOCK) private readonly clock: Clock,
    metrics: Metrics,
  ) {
    this.sealedStandIn = secretBox.seal(STAND_IN_PURPOSE, randomBytes(32));
    this.unreadable = metrics.counter(
      'auth_unreadable_application_secrets_total',
      'Times that a live secret of an application could not be opened',
    );
  }

  /**
   * True when the proof is one of this application. Null, an application that is not known, costs the same
   * and proves nothing.
   */
  proves(application: EnabledApplication | null, proof: Proof): boolean {
    const proven = isProven(proof, this.liveSecrets(application));
    return application !== null && proven;
  }

  /**
   * Whether a request without a proof may act for this application: never for a confidential one, in any
   * flow.
   */
  mayOmitProof(application: Pick<Application, 'confidential'>): boolean {
    return !application.confidential;
  }

  private liveSecrets(application: EnabledApplication | null): readonly Buffer[] {
    const known = application && this.opened.get(application);
    if (known) return known;
    const sealed = application?.sealedSecrets ?? [];
    const secrets = sealed.flatMap((each, index) => this.open(application!, each, index) ?? []);
    for (let missing = sealed.length; missing < LIVE_SECRETS; missing += 1)
      this.secretBox.open(STAND_IN_PURPOSE, this.sealedStandIn);
    if (application !== null) this.opened.set(application, secrets);
    return secrets;
  }

  /** Null for a secret that no configured key opens, or that is damaged. */
  private open(
    { applicationKey, secretVersions }: EnabledApplication,
    sealed: Buffer,
    index: number,
  ): Buffer | null {
    const secret = this.secretBox.tryOpen(applicationSecretPurpose(applicationKey), sealed);
    if (secret !== null) return secret;
    this.unreadable.inc();
    this.complain(applicationKey, secretVersions[index] ?? 0);
    return null;
  }

  private complain(applicationKey: string, version: number): void {
    const secret = `${applicationKey} ${String(version)}`;
    const nowMs = this.clock.monotonicMs();
    const lastMs = this.complainedAtMs.get(secret);
    if (lastMs !== undefined && nowMs - lastMs < COMPLAINT_INTERVAL_MS) return;
    this.complainedAtMs.set(secret, nowMs);
    const advice = `configure its key again, or run: applications discard-secret ${secret}`;
    this.logger.error('a secret of an application cannot be opened', { applicationKey, version, advice });
  }
}
