import type { TestDatabase } from '@platform/testing';
import { IdentityProviderProcess, OPENID_CLIENT } from './identity-provider-process';
import { ReplicaPair } from './replica-processes';
import { SignInBrowser } from './sign-in-browser';
import type { Answer } from './sign-in-browser';

export const SIGNED_IN = { status: 200, reason: 0 };
export const NO_SUCH_SIGN_IN = { status: 400, reason: 7 };
export const REFUSED = { status: 401, reason: 1 };

/** Returns the status and the rejection reason of a response. */
export function outcome({ status, body }: Answer): object {
  return { status, reason: body.rejectionReason };
}

/** An identity provider, and two processes of the service that use it on one database. */
export class SignOnFixture {
  private constructor(
    readonly provider: IdentityProviderProcess,
    private readonly pair: ReplicaPair,
  ) {}

  /** @param ofProvider variables of the identity provider that override the defaults */
  static async start(ofProvider: Readonly<Record<string, string>> = {}): Promise<SignOnFixture> {
    const provider = await IdentityProviderProcess.start(ofProvider);
    const pair = await ReplicaPair.start(environmentFor(provider));
    await pair.database.query(
      `INSERT INTO auth.external_identity (issuer, subject, person_id, user_id)
       VALUES ($1, 'external-ivy', NULL, 9001), ($1, 'external-carl', 1001, NULL), ($1, 'external-dora', 1007, NULL)`,
      [provider.issuer],
    );
    return new SignOnFixture(provider, pair);
  }

  get database(): TestDatabase {
    return this.pair.database;
  }

  /** The URL of the first process. */
  get first(): string {
    return this.pair.first;
  }

  /** The URL of the second process. */
  get second(): string {
    return this.pair.second;
  }

  /** The provider's settings for a further replica. */
  get environment(): NodeJS.ProcessEnv {
    return environmentFor(this.provider);
  }

  async stop(): Promise<void> {
    await this.pair.stop();
    await this.provider.stop();
  }

  /** Completes a sign-in, started on the first replica and completed on the second. */
  async signIn(login: string, headers: Record<string, string> = {}): Promise<Answer> {
    const { browser, fields } = await this.beginSignIn(login);
    return browser.complete(this.second, fields, { headers });
  }

  /** Starts a sign-in, up to the form that the provider makes the browser post. */
  async beginSignIn(
    login: string,
    headers: Record<string, string> = {},
  ): Promise<{ browser: SignInBrowser; fields: Record<string, string> }> {
    const browser = new SignInBrowser();
    const fields = await browser.signIn(await browser.initiate(this.first, headers), login);
    return { browser, fields };
  }
}

function environmentFor({ issuer }: IdentityProviderProcess): NodeJS.ProcessEnv {
  return {
    ...OPENID_CLIENT,
    OPENID_ISSUER: issuer,
    OPENID_DEFAULT_APPLICATION: 'demo-backend',
    OPENID_HTTP_ALLOWED: 'true',
    OPENID_TIMEOUT_MS: '1000',
  };
}
