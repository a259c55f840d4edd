import { Headers, Redirect, Res } from '@nestjs/common';
import { Documented } from '@platform/service-defaults';
import type { FastifyReply } from 'fastify';
import { SingleSignOn } from '../../openid/single-sign-on.service';
import { SignInApplications } from '../sign-in-applications.service';
import { SSO_INITIATE } from '../flow-docs';
import { TokenFlowController, TokenGet } from '../token-flow.decorator';

/** The way to the identity provider. */
@TokenFlowController()
export class SsoInitiateFlow {
  constructor(
    private readonly signOn: SingleSignOn,
    private readonly applications: SignInApplications,
  ) {}

  /** An application that names itself here need not do so at the callback, which a browser sends without headers of ours. */
  @TokenGet('sso/initiate')
  @Documented(SSO_INITIATE)
  @Redirect()
  async initiate(
    @Headers('cookie') cookies: string | undefined,
    @Headers('x-application-key') applicationKey: string | undefined,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<{ url: string }> {
    this.signOn.assertConfigured();
    const application = await this.applications.find('openid', applicationKey);
    const { authorizationUrl, cookie } = await this.signOn.start(
      cookies,
      application?.applicationKey ?? null,
    );
    void reply.headers({
      'set-cookie': cookie,
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
    });
    return { url: authorizationUrl };
  }
}
