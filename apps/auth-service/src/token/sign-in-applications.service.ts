import { Injectable } from '@nestjs/common';
import type { Application } from '../applications/application';
import { ApplicationsService } from '../applications/applications.service';
import { authoriseFlow } from './authorise-flow';
import type { TokenFlow } from '../token-endpoints/rejection';
import { TokenRejected, TokenRejectionReason } from '../token-endpoints/rejection';

/** The applications in which users sign in themselves. Public clients have no secret to prove. */
@Injectable()
export class SignInApplications {
  constructor(private readonly applications: ApplicationsService) {}

  /** @param applicationKey the one named by the request, else the flow's default; undefined: none, so there is no refresh token
   *  @throws {TokenRejected} InvalidGrant when it is unknown or may not use this flow */
  async find(flow: TokenFlow, applicationKey: string | undefined): Promise<Application | null> {
    if (applicationKey === undefined) return null;
    const application = await this.applications.find(applicationKey);
    if (application === null) {
      throw new TokenRejected(TokenRejectionReason.InvalidGrant, 'This application may not sign users in.');
    }
    authoriseFlow(application, flow);
    return application;
  }
}
