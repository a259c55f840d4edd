import { createHmac, createSecretKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { trustSignedText } from '@platform/auth-client';
import type { UnsignedTrustRequest } from '@platform/auth-client';
import { together } from '@platform/database';
import { CLOCK } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { openSecret } from '../keys/secret-box';
import { TokenRateLimits } from '../rate-limits/token-rate-limits.service';
import { TokenRejected, TokenRejectionReason } from '../token-endpoints/rejection';
import type { Application } from './application';
import { comparableSecrets, decodeAuthenticationCode, isFreshTimestamp, matchesAny } from './application';
import { applicationSecretPurpose } from './application-secrets';
import { ApplicationsRepository } from './applications.repository';
import type { EnabledApplication } from './applications.repository';

/** Registered applications: who they are, and whether a request really comes from one. */
@Injectable()
export class ApplicationsService {
  /** The enabled application with this key, or null. Its secrets stay sealed: only the proofs below open them. Concurrent calls share a
   *  statement. */
  readonly find: (applicationKey: string) => Promise<EnabledApplication | null>;
  private readonly encryptionKey: KeyObject;

  constructor(
    repository: ApplicationsRepository,
    @Inject(AUTH_CONFIG) config: AuthConfig,
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly limits: TokenRateLimits,
  ) {
    this.encryptionKey = createSecretKey(config.SECRET_ENCRYPTION_KEY);
    this.find = together((keys) => repository.findEnabled(keys));
  }

  /** The application that signed `request`. The order of the checks is fixed: an unproven caller learns nothing of age or
   *  replay, and only a proven, fresh request takes a replay row and counts for the application's rate limit.
   *  @throws {TokenRejected} AuthenticationFailed @throws {TokenRateExceeded} */
  async authenticateSigned(
    request: UnsignedTrustRequest & { authenticationCode: string },
  ): Promise<Application> {
    const application = await this.find(request.applicationKey);
    const code = decodeAuthenticationCode(request.authenticationCode) ?? Buffer.alloc(0);
    const signedText = trustSignedText(request);
    const expected = this.secretsToCompare(application).map((secret) =>
      createHmac('sha256', createSecretKey(secret)).update(signedText, 'utf8').digest(),
    );
    const proven = matchesAny(code, expected);
    if (application === null || !proven)
      throw proofFailed(application === null ? 'unknown application' : 'wrong code');
    if (!isFreshTimestamp(new Date(request.requestTimestampUtc), this.clock.now()))
      throw proofFailed('stale timestamp');
    if (!(await this.limits.admitSigned(application.applicationKey, code))) throw proofFailed('replayed');
    return application;
  }

  /** The application that knows `sharedSecret`. @throws {TokenRejected} AuthenticationFailed */
  async authenticateSecret(applicationKey: string, sharedSecret: string): Promise<Application> {
    const application = await this.find(applicationKey);
    const proven = matchesAny(Buffer.from(sharedSecret), this.secretsToCompare(application));
    if (application === null || !proven)
      throw proofFailed(application === null ? 'unknown application' : 'wrong secret');
    return application;
  }

  private secretsToCompare(application: EnabledApplication | null): readonly Buffer[] {
    if (application === null) return comparableSecrets(null);
    const purpose = applicationSecretPurpose(application.applicationKey);
    const open = (sealed: Buffer): Buffer => openSecret(this.encryptionKey, purpose, sealed);
    return comparableSecrets(application.sealedSecrets.map(open));
  }
}

function proofFailed(privateDetail: string): TokenRejected {
  return new TokenRejected(
    TokenRejectionReason.AuthenticationFailed,
    'The application could not be authenticated.',
    {
      stage: 'proof',
      privateDetail,
    },
  );
}
