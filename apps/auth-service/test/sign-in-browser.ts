import { PASSWORD } from './auth-fixture';

/** The response of a token endpoint. */
export interface Answer {
  status: number;
  headers: Headers;
  body: { accessToken: string; refreshToken: string | null; rejectionReason: number; wasSuccessful: boolean };
}

/** The parts of a browser that a sign-in needs: cookies by host, redirects and forms. */
export class SignInBrowser {
  private readonly jars = new Map<string, Map<string, string>>();

  /** Starts a sign-in at a replica. @returns the URL to which it redirects */
  async initiate(replicaUrl: string, headers: Record<string, string> = {}, query = ''): Promise<URL> {
    const response = await this.send(`${replicaUrl}/auth/token/sso/initiate?${query}`, { headers });
    if (response.status !== 302) throw new Error(`initiate answered ${String(response.status)}`);
    return new URL(response.headers.get('location')!);
  }

  /**
   * Signs in at the identity provider.
   * @returns the fields of the form that the provider makes the browser post
   */
  async signIn(authorizationUrl: URL, login: string, password = PASSWORD): Promise<Record<string, string>> {
    const page = await this.follow(authorizationUrl.href);
    const action = attribute(await page.response.text(), 'form', 'action');
    const form = new URLSearchParams({ login, password });
    const done = await this.follow(new URL(action, page.url).href, { method: 'POST', body: form });
    return hiddenFields(await done.response.text());
  }

  /** Whether the provider asks for a password, rather than using its existing session of this browser. */
  async isAskedToSignIn(authorizationUrl: URL): Promise<boolean> {
    const page = await this.follow(authorizationUrl.href);
    return (await page.response.text()).includes('type="password"');
  }

  /** Posts the provider's form to a replica. */
  async complete(
    replicaUrl: string,
    fields: Record<string, string>,
    { path = '/auth/token/openId', headers = {} }: { path?: string; headers?: Record<string, string> } = {},
  ): Promise<Answer> {
    const body = new URLSearchParams(fields);
    const response = await this.send(`${replicaUrl}${path}`, { method: 'POST', body, headers });
    return {
      status: response.status,
      headers: response.headers,
      body: (await response.json()) as Answer['body'],
    };
  }

  /**
   * Posts the provider's form of a sign-in that returns to an application.
   * @returns the URL to which the browser is redirected
   */
  async completeElsewhere(
    replicaUrl: string,
    fields: Record<string, string>,
    path = '/auth/token/openId',
  ): Promise<URL> {
    const body = new URLSearchParams(fields);
    const response = await this.send(`${replicaUrl}${path}`, { method: 'POST', body });
    if (response.status !== 303)
      throw new Error(`answered ${String(response.status)}: ${await response.text()}`);
    expect(response.headers.get('cache-control')).toBe('no-store');
    return new URL(response.headers.get('location')!);
  }

  /** Returns the cookies for a host. Ports share them. */
  cookies(url: string): Map<string, string> {
    const { hostname } = new URL(url);
    const jar = this.jars.get(hostname) ?? new Map<string, string>();
    this.jars.set(hostname, jar);
    return jar;
  }

  private async follow(url: string, init: RequestInit = {}): Promise<{ url: string; response: Response }> {
    const response = await this.send(url, init);
    const location = response.headers.get('location');
    return location === null ? { url, response } : this.follow(new URL(location, url).href);
  }

  protected async send(url: string, init: RequestInit): Promise<Response> {
    const jar = this.cookies(url);
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const headers = { ...(init.headers as Record<string, string>), ...(cookie === '' ? {} : { cookie }) };
    const response = await fetch(url, { ...init, headers, redirect: 'manual' });
    for (const line of response.headers.getSetCookie()) {
      const [pair = ''] = line.split(';');
      const name = pair.slice(0, pair.indexOf('='));
      const value = pair.slice(name.length + 1);
      if (value === '') jar.delete(name);
      else jar.set(name, value);
    }
    return response;
  }
}

function attribute(html: string, tag: string, name: string): string {
  const found = new RegExp(`<${tag}\\b[^>]*\\b${name}="([^"]*)"`).exec(html);
  if (found === null) throw new Error(`no ${tag} with ${name} in: ${html}`);
  return found[1]!;
}

function hiddenFields(html: string): Record<string, string> {
  const inputs = html.match(/<input\b[^>]*type="hidden"[^>]*>/g) ?? [];
  return Object.fromEntries(
    inputs.map((input) => [attribute(input, 'input', 'name'), attribute(input, 'input', 'value')]),
  );
}
