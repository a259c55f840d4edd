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
 * Minimum time in ms between two log lines about one unreadable secret, because anyone can cause them by
 * naming its application.
 */
const LOG_INTERVAL_MS = 10 * MINUTE_MS;

/**
 * Verifies applications' proofs. A secret that cannot be opened is skipped; the application's other secrets
 * still count.
 */
@Injectable()
export class ApplicationProofs {
  private readonly logger = new Logger('ApplicationProofs');
  /** Opened secrets per application row. Requests that share a look-up share the row. */
  private readonly opened = new WeakMap<EnabledApplication, readonly Buffer[]>();
  /** Opened in place of each missing secret, so that an unknown application takes as long as a known one. */
  private readonly sealedStandIn: Buffer;
  private readonly loggedAtMs = new Map<string, number>();
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
   * Whether the proof matches a secret of this application. The check of an unknown application (null) takes
   * as long, and returns false.
   */
  proves(application: EnabledApplication | null, proof: Proof): boolean {
    const proven = isProven(proof, this.liveSecrets(application));
    return application !== null && proven;
  }

  /**
   * Whether a request without a proof may act for this application. A confidential application needs a proof
   * in every flow.
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

  /** Returns null if no configured key opens the secret, or it is damaged. */
  private open(
    { applicationKey, secretVersions }: EnabledApplication,
    sealed: Buffer,
    index: number,
  ): Buffer | null {
    const secret = this.secretBox.tryOpen(applicationSecretPurpose(applicationKey), sealed);
    if (secret !== null) return secret;
    this.unreadable.inc();
    this.logUnreadable(applicationKey, secretVersions[index] ?? 0);
    return null;
  }

  private logUnreadable(applicationKey: string, version: number): void {
    const secret = `${applicationKey} ${String(version)}`;
    const nowMs = this.clock.monotonicMs();
    const lastMs = this.loggedAtMs.get(secret);
    if (lastMs !== undefined && nowMs - lastMs < LOG_INTERVAL_MS) return;
    this.loggedAtMs.set(secret, nowMs);
    const advice = `configure its key again, or run: applications discard-secret ${secret}`;
    this.logger.error('a secret of an application cannot be opened', { applicationKey, version, advice });
  }
}
