import { createHmac, createSecretKey } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { trustSignedText } from '@platform/auth-client';
import type { TrustRequest } from '@platform/auth-client';
import { CLOCK } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { RateLimitsService } from '../rate-limits/rate-limits.service';
import { TokenRejected, TokenRejectionReason } from '../rejections/token-rejection';
import type { TokenFlow } from '../rejections/token-rejection';
import { RevocationsRepository } from '../revocations/revocations.repository';
import { decodeAuthenticationCode, isFreshTimestamp, mayUseFlow } from './application';
import type { Application } from './application';
import { ApplicationProofs } from './application-proofs.service';
import { ApplicationsRepository } from './applications.repository';
import type { EnabledApplication } from './applications.repository';
import { TrustSignaturesRepository } from './trust-signatures.repository';
import type { SignatureUse, TrustSignature } from './trust-signatures.repository';

/** The application that a request names, and the secret that it sends; null or absent: none. */
interface NamedApplication {
  applicationKey: string | null | undefined;
  sharedSecret: string | null | undefined;
}

/** The application that a request names, read but not yet checked. */
export interface ReadApplication {
  /** Null if the request names none, or an unknown one. */
  application: EnabledApplication | null;
  /** The database's time before the application was read. Null if the request names an unknown one. */
  readAt: Date | null;
}

/**
 * Identifies the application of a token request, authenticates it, and checks that it is permitted to use the
 * flow.
 */
@Injectable()
export class TokenApplicationsService {
  constructor(
    private readonly applications: ApplicationsRepository,
    private readonly signatures: TrustSignaturesRepository,
    @Inject(RateLimitsService) private readonly limits: RateLimitsService | null,
    private readonly proofs: ApplicationProofs,
    private readonly revocations: RevocationsRepository,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  /**
   * Finds the application of a request without proof, e.g. of a public client, which has no secret.
   * @param applicationKey absent: returns null, and no refresh token is issued
   * @throws {TokenRejected} InvalidGrant when the application is unknown, may not use this flow, or is
   * confidential
   */
  async findUnproven(
    flow: TokenFlow,
    applicationKey: string | null | undefined,
  ): Promise<EnabledApplication | null> {
    if (applicationKey === null || applicationKey === undefined) return null;
    const application = await this.findPermitted(flow, applicationKey);
    this.refuseMissingProof(application);
    return application;
  }

  /**
   * Reads the application of a request before the user is authenticated, so that everything read later is no
   * older than `readAt`. `permitUnproven` checks the application afterwards.
   */
  async read(applicationKey: string | null | undefined): Promise<ReadApplication> {
    if (applicationKey === null || applicationKey === undefined)
      return { application: null, readAt: await this.revocations.now() };
    const application = await this.applications.findEnabled(applicationKey);
    return { application, readAt: application?.readAt ?? null };
  }

  /**
   * Applies the checks of `findUnproven` to an application that `read` has returned.
   * @returns `readAt`: the database's time before the application was read
   * @throws {TokenRejected} InvalidGrant
   */
  permitUnproven(flow: TokenFlow, { application, readAt }: ReadApplication): Date {
    if (readAt === null) throw notPermitted(flow);
    if (application !== null) this.refuseMissingProof(permitted(application, flow));
    return readAt;
  }

  /**
   * Refuses an application that may not use this flow. Does not require a proof.
   * @throws {TokenRejected} InvalidGrant
   */
  async assertPermitted(flow: TokenFlow, applicationKey: string): Promise<void> {
    await this.findPermitted(flow, applicationKey);
  }

  private async findPermitted(flow: TokenFlow, applicationKey: string): Promise<EnabledApplication> {
    const application = await this.applications.findEnabled(applicationKey);
    if (application === null) throw notPermitted(flow);
    return permitted(application, flow);
  }

  /**
   * Authenticates the application of a request by its secret. Returns null if the request sends none; then
   * use `findUnproven`.
   * @throws {TokenRejected} AuthenticationFailed when the secret is wrong or no application is named;
   * InvalidGrant when the application may not use this flow
   * @throws {TokenRateExceeded}
   */
  async authenticateIfSecretSent(
    flow: TokenFlow,
    { applicationKey, sharedSecret }: NamedApplication,
  ): Promise<EnabledApplication | null> {
    if (sharedSecret === null || sharedSecret === undefined) return null;
    if (applicationKey === null || applicationKey === undefined) throw proofFailed('no application');
    return this.authenticateSecret(applicationKey, sharedSecret, flow);
  }

  /**
   * Refuses a request that sends a wrong secret for its application, or none although the application is
   * confidential.
   * @throws {TokenRejected} AuthenticationFailed or InvalidGrant
   * @throws {TokenRateExceeded}
   */
  async assertProofIfNeeded(
    application: Application,
    sharedSecret: string | null | undefined,
  ): Promise<void> {
    if (sharedSecret === null || sharedSecret === undefined) this.refuseMissingProof(application);
    else await this.prove(application.applicationKey, sharedSecret);
  }

  private refuseMissingProof(application: Application): void {
    if (this.proofs.mayOmitProof(application)) return;
    throw new TokenRejected(
      TokenRejectionReason.InvalidGrant,
      'This application gets tokens only with a proof of its secret.',
    );
  }

  /**
   * Authenticates an application by its secret and checks that it may use this flow.
   * @throws {TokenRejected} AuthenticationFailed; InvalidGrant when it may not use this flow
   * @throws {TokenRateExceeded}
   */
  async authenticateSecret(
    applicationKey: string,
    sharedSecret: string,
    flow: TokenFlow,
  ): Promise<EnabledApplication> {
    return permitted(await this.prove(applicationKey, sharedSecret), flow);
  }

  /**
   * Authenticates an application by its secret, for any flow. The request counts against the application's
   * rate limit.
   * @throws {TokenRejected} AuthenticationFailed
   * @throws {TokenRateExceeded}
   */
  async prove(applicationKey: string, sharedSecret: string): Promise<EnabledApplication> {
    const application = await this.applications.findEnabled(applicationKey);
    const proven = this.proofs.proves(application, { given: Buffer.from(sharedSecret) });
    if (application === null || !proven)
      throw proofFailed(application === null ? 'unknown application' : 'wrong secret');
    await this.limits?.admitApplication(applicationKey);
    return application;
  }

  /**
   * Authenticates the application that signed `request`. The order of the checks matters: a caller with a
   * wrong signature learns nothing about age or replay, and only a fresh request with a correct signature
   * consumes the signature and counts against the application's rate limit.
   * @throws {TokenRejected} AuthenticationFailed; InvalidGrant when it may not use this flow
   * @throws {TokenRateExceeded}
   */
  async authenticateSigned(request: TrustRequest): Promise<EnabledApplication> {
    const application = await this.applications.findEnabled(request.applicationKey);
    const code = codeOf(request.authenticationCode);
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

  /** Makes the signature that `authenticateSigned` has consumed usable again. */
  async giveBackSignature(request: TrustRequest): Promise<void> {
    const { applicationKey, authenticationCode } = request;
    await this.signatures.giveBack({ applicationKey, code: codeOf(authenticationCode) });
  }

  /**
   * Counts a signed request and consumes its signature. A request refused by the rate limit keeps its
   * signature and can be sent again; a replayed request does not count against the limit.
   */
  private async useUp(signature: TrustSignature): Promise<SignatureUse> {
    const use = await this.limits?.admitApplicationBy(signature.applicationKey, (bucket, limit) =>
      this.signatures.takeAndRecord(bucket, limit, signature),
    );
    return use ?? this.signatures.record(signature);
  }
}

/** Decodes a code. Returns an empty buffer, which matches no signature, if it is not base64. */
function codeOf(authenticationCode: string): Buffer {
  return decodeAuthenticationCode(authenticationCode) ?? Buffer.alloc(0);
}

/** Returns the application if it may use the flow. @throws {TokenRejected} InvalidGrant */
function permitted(application: EnabledApplication, flow: TokenFlow): EnabledApplication {
  if (mayUseFlow(application, flow)) return application;
  throw new TokenRejected(
    TokenRejectionReason.InvalidGrant,
    'This flow is not permitted to this application.',
  );
}

/** Returns the rejection of an unknown or disabled application; the caller cannot tell them apart. */
function notPermitted(flow: TokenFlow): TokenRejected {
  const what = flow === 'bearer' ? 'exchange tokens' : 'sign users in';
  return new TokenRejected(TokenRejectionReason.InvalidGrant, `This application may not ${what}.`);
}

function proofFailed(privateDetail: string): TokenRejected {
  const detail = 'The application could not be authenticated.';
  return new TokenRejected(TokenRejectionReason.AuthenticationFailed, detail, {
    stage: 'proof',
    privateDetail,
  });
}
