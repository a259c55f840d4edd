import { Injectable } from '@nestjs/common';
import type { Application } from '../../applications/application';
import { ApplicationsService } from '../../applications/applications.service';
import { authoriseFlow } from '../authorise-flow';
import type { TokenFlow } from '../rejection';
import { TokenRejected, TokenRejectionReason } from '../rejection';

/** The applications through which people sign in. They are public clients: they name themselves and have no secret to prove. */
@Injectable()
export class LoginApplications {
  constructor(private readonly applications: ApplicationsService) {}

  /** The application with this key; null where none is named, which means no refresh token.
   *  @throws {TokenRejected} InvalidGrant when it is unknown or may not use the flow */
  async findFor(flow: TokenFlow, applicationKey: string | undefined): Promise<Application | null> {
    if (applicationKey === undefined) return null;
    const application = await this.applications.find(applicationKey);
    if (application === null) {
      throw new TokenRejected(TokenRejectionReason.InvalidGrant, 'This application may not sign users in.');
    }
    authoriseFlow(application, flow);
    return application;
  }
}
