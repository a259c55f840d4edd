import { createHmac, createSecretKey } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { trustSignedText } from '@platform/auth-client';
import type { TrustRequest } from '@platform/auth-client';
import { CLOCK } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { decodeAuthenticationCode, isFreshTimestamp, mayUseFlow } from '../applications/application';
import type { Application } from '../applications/application';
import { ApplicationProofs } from '../applications/application-proofs.service';
import { ApplicationsRepository } from '../applications/applications.repository';
import type { EnabledApplication } from '../applications/applications.repository';
import { RateLimitsService } from '../rate-limits/rate-limits.service';
import { TokenRejected, TokenRejectionReason } from '../rejections/token-rejection';
import type { TokenFlow } from '../rejections/token-rejection';
import { RevocationsRepository } from '../revocations/revocations.repository';
import { TrustSignaturesRepository } from './trust-signatures.repository';
import type { SignatureUse, TrustSignature } from './trust-signatures.repository';

/** An application as a request names it, and the secret that the request brings; null or left out: none. */
interface NamedApplication {
  applicationKey: string | null | undefined;
  sharedSecret: string | null | undefined;
}

/** The application that a request names, as it was read and not yet judged. */
export interface ReadApplication {
  /** Null: none is named, or none that is there. */
  application: EnabledApplication | null;
  /** The database's time before it was read. Null: one is named that is not there. */
  readAt: Date | null;
}

/**
 * The applications that ask for tokens: which one a request names, whether it really comes from there, and
 * whether it may use the flow.
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

  /** The application of a request that brings no proof: public clients have no secret.
   *  @param applicationKey absent: no application, so there is no refresh token
   *  @throws {TokenRejected} InvalidGrant when it is unknown, may not use this flow, or is confidential */
  async findUnproven(
    flow: TokenFlow,
    applicationKey: string | null | undefined,
  ): Promise<EnabledApplication | null> {
    if (applicationKey === null || applicationKey === undefined) return null;
    const application = await this.findPermitted(flow, applicationKey);
    this.refuseMissingProof(application);
    return application;
  }

  /** Reads the application of a request before the user has proved anything: what is read afterwards is no
   *  older than `readAt`. `permitUnproven` judges it. */
  async read(applicationKey: string | null | undefined): Promise<ReadApplication> {
    if (applicationKey === null || applicationKey === undefined)
      return { application: null, readAt: await this.revocations.present() };
    const application = await this.applications.findEnabled(applicationKey);
    return { application, readAt: application?.readAt ?? null };
  }

  /** As `findUnproven`, of an application that has been read.
   *  @returns when it was read
   *  @throws {TokenRejected} InvalidGrant */
  permitUnproven(flow: TokenFlow, { application, readAt }: ReadApplication): Date {
    if (readAt === null) throw notPermitted(flow);
    if (application !== null) this.refuseMissingProof(permitted(application, flow));
    return readAt;
  }

  /** Refuses an application that may not use this flow. It asks for no proof: the sign-in has yet to begin.
   *  @throws {TokenRejected} InvalidGrant */
  async assertPermitted(flow: TokenFlow, applicationKey: string): Promise<void> {
    await this.findPermitted(flow, applicationKey);
  }

  private async findPermitted(flow: TokenFlow, applicationKey: string): Promise<EnabledApplication> {
    const application = await this.applications.findEnabled(applicationKey);
    if (application === null) throw notPermitted(flow);
    return permitted(application, flow);
  }

  /**
   * The application of a request that may bring its secret. Null: it brings none, and `findUnproven` decides.
   * @throws {TokenRejected} AuthenticationFailed when the secret is not this application's, or none is named;
   * InvalidGrant when it may not use this flow
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
   * Refuses a request for an application already found that brings a wrong secret, or none although it has
   * to.
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

  /** The application that knows `sharedSecret`.
   *  @throws {TokenRejected} AuthenticationFailed; InvalidGrant when it may not use this flow
   *  @throws {TokenRateExceeded} */
  async authenticateSecret(
    applicationKey: string,
    sharedSecret: string,
    flow: TokenFlow,
  ): Promise<EnabledApplication> {
    return permitted(await this.prove(applicationKey, sharedSecret), flow);
  }

  /**
   * The application that knows `sharedSecret`, whatever it may do with it. The request counts for its rate
   * limit.
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
   * The application that signed `request`. The order of the checks is fixed: an unproven caller learns
   * nothing of age or replay, and only a proven, fresh request uses up its signature and counts for the
   * application's rate limit.
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

  /** Gives back the signature that `authenticateSigned` has used up. */
  async giveBackSignature(request: TrustRequest): Promise<void> {
    const { applicationKey, authenticationCode } = request;
    await this.signatures.giveBack({ applicationKey, code: codeOf(authenticationCode) });
  }

  /**
   * Counts a signed request and uses up its signature: a request refused for its rate can be sent again as it
   * is, and a replayed one costs the application nothing.
   */
  private async useUp(signature: TrustSignature): Promise<SignatureUse> {
    const use = await this.limits?.admitApplicationBy(signature.applicationKey, (bucket, limit) =>
      this.signatures.takeAndRecord(bucket, limit, signature),
    );
    return use ?? this.signatures.record(signature);
  }
}

/** Empty, which proves nothing, for what is no base64. */
function codeOf(authenticationCode: string): Buffer {
  return decodeAuthenticationCode(authenticationCode) ?? Buffer.alloc(0);
}

/** The application if the flow is among its flows. @throws {TokenRejected} InvalidGrant */
function permitted(application: EnabledApplication, flow: TokenFlow): EnabledApplication {
  if (mayUseFlow(application, flow)) return application;
  throw new TokenRejected(
    TokenRejectionReason.InvalidGrant,
    'This flow is not permitted to this application.',
  );
}

/** Unknown and disabled read the same. */
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
