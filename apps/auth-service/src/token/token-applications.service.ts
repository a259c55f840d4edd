import { createHmac, createSecretKey } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { trustSignedText } from '@platform/auth-client';
import type { UnsignedTrustRequest } from '@platform/auth-client';
import { CLOCK } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { decodeAuthenticationCode, isFreshTimestamp, mayUseFlow } from '../applications/application';
import type { Application } from '../applications/application';
import { ApplicationProofs } from '../applications/application-proofs.service';
import { ApplicationsRepository } from '../applications/applications.repository';
import { RateLimitsService } from '../rate-limits/rate-limits.service';
import { TokenRejected, TokenRejectionReason } from '../rejections/token-rejection';
import type { TokenFlow } from '../rejections/token-rejection';
import { TrustSignaturesRepository } from './trust-signatures.repository';
import type { SignatureUse, TrustSignature } from './trust-signatures.repository';

/** The applications that ask for tokens: which one a request names, whether it really comes from there, and whether it may use the flow. */
@Injectable()
export class TokenApplicationsService {
  constructor(
    private readonly applications: ApplicationsRepository,
    private readonly signatures: TrustSignaturesRepository,
    @Inject(RateLimitsService) private readonly limits: RateLimitsService | null,
    private readonly proofs: ApplicationProofs,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  /** The application in which a user signs in, or whose access token is exchanged. It is not proved: public clients have no secret.
   *  @param applicationKey absent: no application, so there is no refresh token
   *  @throws {TokenRejected} InvalidGrant when it is unknown or may not use this flow */
  async find(flow: TokenFlow, applicationKey: string | null | undefined): Promise<Application | null> {
    if (applicationKey === null || applicationKey === undefined) return null;
    const application = await this.applications.findEnabled(applicationKey);
    if (application === null) {
      const what = flow === 'bearer' ? 'exchange tokens' : 'sign users in';
      throw new TokenRejected(TokenRejectionReason.InvalidGrant, `This application may not ${what}.`);
    }
    return permitted(application, flow);
  }

  /** The application that knows `sharedSecret`.
   *  @throws {TokenRejected} AuthenticationFailed; InvalidGrant when it may not use this flow
   *  @throws {TokenRateExceeded} */
  async authenticateSecret(
    applicationKey: string,
    sharedSecret: string,
    flow: TokenFlow,
  ): Promise<Application> {
    return permitted(await this.prove(applicationKey, sharedSecret), flow);
  }

  /** The application that knows `sharedSecret`, whatever it may do with it. The request counts for its rate limit.
   *  @throws {TokenRejected} AuthenticationFailed
   *  @throws {TokenRateExceeded} */
  async prove(applicationKey: string, sharedSecret: string): Promise<Application> {
    const application = await this.applications.findEnabled(applicationKey);
    const proven = this.proofs.proves(application, { given: Buffer.from(sharedSecret) });
    if (application === null || !proven)
      throw proofFailed(application === null ? 'unknown application' : 'wrong secret');
    await this.limits?.admitApplication(applicationKey);
    return application;
  }

  /** The application that signed `request`. The order of the checks is fixed: an unproven caller learns nothing of age or replay, and only
   *  a proven, fresh request uses up its signature and counts for the application's rate limit.
   *  @throws {TokenRejected} AuthenticationFailed; InvalidGrant when it may not use this flow
   *  @throws {TokenRateExceeded} */
  async authenticateSigned(
    request: UnsignedTrustRequest & { authenticationCode: string },
  ): Promise<Application> {
    const application = await this.applications.findEnabled(request.applicationKey);
    const code = decodeAuthenticationCode(request.authenticationCode) ?? Buffer.alloc(0);
    const signedText = trustSignedText(request);
    const proven = this.proofs.proves(application, {
      given: code,
      expectedOf: (secret) =>
        createHmac('sha256', createSecretKey(secret)).update(signedText, 'utf8').digest(),
    });
    if (application === null || !proven)
      throw proofFailed(application === null ? 'unknown application' : 'wrong code');
    const signedAt = new Date(request.requestTimestampUtc);
    if (!isFreshTimestamp(signedAt, this.clock.now())) throw proofFailed('stale timestamp');
    const { applicationKey } = application;
    const use = await this.useUp({ applicationKey, code, signedAt });
    if (use !== 'first') throw proofFailed(use === 'stale' ? 'stale timestamp' : 'replayed');
    return permitted(application, 'trust');
  }

  /** Counts a signed request and uses up its signature: a request refused for its rate can be sent again as it is, and a replayed one costs
   *  the application nothing. */
  private async useUp(signature: TrustSignature): Promise<SignatureUse> {
    const use = await this.limits?.admitApplicationBy(signature.applicationKey, (bucket, limit) =>
      this.signatures.takeAndRecord(bucket, limit, signature),
    );
    return use ?? this.signatures.record(signature);
  }
}

/** The application if the flow is among its flows. @throws {TokenRejected} InvalidGrant */
function permitted(application: Application, flow: TokenFlow): Application {
  if (mayUseFlow(application, flow)) return application;
  throw new TokenRejected(
    TokenRejectionReason.InvalidGrant,
    'This flow is not permitted to this application.',
  );
}

function proofFailed(privateDetail: string): TokenRejected {
  const detail = 'The application could not be authenticated.';
  return new TokenRejected(TokenRejectionReason.AuthenticationFailed, detail, {
    stage: 'proof',
    privateDetail,
  });
}
