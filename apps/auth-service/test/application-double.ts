import { createHash, randomBytes } from 'node:crypto';
import { startHttpDouble } from '@platform/testing';
import type { HttpDouble } from '@platform/testing';

/**
 * A test double of another team's application whose users sign in by single sign-on. It keeps the verifier
 * and the state, and fetches the tokens.
 */
export class ApplicationDouble {
  readonly verifier = randomBytes(32).toString('base64url');
  readonly state = `state of the application & ü ${randomBytes(8).toString('hex')}`;
  /** The parameters of each returning browser. */
  readonly returned: URLSearchParams[] = [];
  private server!: HttpDouble;

  private constructor(
    readonly applicationKey: string,
    private readonly authUrl: string,
  ) {}

  /** @param authUrl the address of auth-service */
  static async start(applicationKey: string, authUrl: string): Promise<ApplicationDouble> {
    const application = new ApplicationDouble(applicationKey, authUrl);
    application.server = await startHttpDouble((request, response) => {
      const { pathname, searchParams } = new URL(request.url ?? '/', application.returnUrl);
      request.resume();
      const page = pathname === '/signed-in' ? application.signIn(searchParams) : Promise.resolve('');
      void page.then((text) => response.setHeader('content-type', 'text/html').end(`<h1>${text}</h1>`));
    });
    return application;
  }

  get returnUrl(): string {
    return `${this.server.url}/signed-in`;
  }

  /** The URL to which the application sends browsers to sign in. */
  get signInUrl(): string {
    return `${this.authUrl}/auth/token/sso/initiate?${new URLSearchParams(this.parameters()).toString()}`;
  }

  parameters(change: Record<string, string> = {}): Record<string, string> {
    const codeChallenge = createHash('sha256').update(this.verifier).digest('base64url');
    const { applicationKey, returnUrl, state } = this;
    return { applicationKey, returnUrl, codeChallenge, state, ...change };
  }

  close(): Promise<void> {
    return this.server.close();
  }

  private async signIn(parameters: URLSearchParams): Promise<string> {
    this.returned.push(parameters);
    if (parameters.get('state') !== this.state) return 'Another state';
    const error = parameters.get('error');
    if (error !== null) return `Not signed in: ${error}`;
    const headers = { 'content-type': 'application/json' };
    const { applicationKey, verifier: codeVerifier } = this;
    const body = JSON.stringify({ applicationKey, codeVerifier, code: parameters.get('code') });
    const tokens = await fetch(`${this.authUrl}/auth/token/code`, { method: 'POST', headers, body });
    const { accessToken } = (await tokens.json()) as { accessToken: string | null };
    const authorization = `Bearer ${accessToken ?? ''}`;
    const me = await fetch(`${this.authUrl}/auth/me`, { headers: { authorization } });
    return `Signed in as ${((await me.json()) as { name: string }).name}`;
  }
}
