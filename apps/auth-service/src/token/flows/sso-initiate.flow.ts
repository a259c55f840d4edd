import { Get, Headers, Redirect, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { SingleSignOn } from '../../openid/single-sign-on.service';
import { TokenFlowController } from '../token-flow.decorator';
import { LoginApplications } from './login-applications.service';

/** The way to the identity provider. */
@TokenFlowController()
export class SsoInitiateFlow {
  constructor(
    private readonly signOn: SingleSignOn,
    private readonly applications: LoginApplications,
  ) {}

  /** An application that names itself here need not do so at the callback, which a browser sends without headers of ours. */
  @Get('sso/initiate')
  @Redirect()
  async initiate(
    @Headers('cookie') cookies: string | undefined,
    @Headers('x-application-key') applicationKey: string | undefined,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<{ url: string }> {
    this.signOn.assertConfigured();
    const application = await this.applications.findFor('openid', applicationKey);
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
