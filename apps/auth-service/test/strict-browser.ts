import { SignInBrowser } from './sign-in-browser';

interface Cookie {
  host: string;
  name: string;
  value: string;
  secure: boolean;
  sameSite: string;
}

/**
 * A browser that applies the rules of real ones for Secure, SameSite and `__Host-` when it stores and sends
 * cookies. Source: RFC 6265bis, sections 5.6 and 5.7.3. A host counts as a site, because the tests' hosts are
 * IP addresses.
 */
export class StrictBrowser extends SignInBrowser {
  private stored: Cookie[] = [];
  /** The current page, whose form is posted next. */
  private page: URL | null = null;

  /** Returns the names of the cookies stored for a host. */
  cookieNames(url: string): string[] {
    return this.stored.filter(({ host }) => host === new URL(url).hostname).map(({ name }) => name);
  }

  protected override async send(address: string, init: RequestInit): Promise<Response> {
    const url = new URL(address);
    const sent = this.stored.filter((cookie) => this.isSent(cookie, url, init.method ?? 'GET'));
    const cookie = sent.map(({ name, value }) => `${name}=${value}`).join('; ');
    const headers = { ...(init.headers as Record<string, string>), ...(cookie === '' ? {} : { cookie }) };
    const response = await fetch(url, { ...init, headers, redirect: 'manual' });
    for (const line of response.headers.getSetCookie()) this.store(line, url);
    if (!response.headers.has('location')) this.page = url;
    return response;
  }

  private isSent({ host, secure, sameSite }: Cookie, url: URL, method: string): boolean {
    if (host !== url.hostname || (secure && url.protocol !== 'https:')) return false;
    const crossSite = this.page !== null && this.page.hostname !== url.hostname;
    return !crossSite || sameSite === 'none' || (sameSite === 'lax' && method === 'GET');
  }

  private store(line: string, url: URL): void {
    const [pair = '', ...rest] = line.split(';').map((part) => part.trim());
    const attributes = new Map(
      rest.map((part) => {
        const [name = '', value = ''] = part.split('=');
        return [name.toLowerCase(), value] as const;
      }),
    );
    const [name = '', ...value] = pair.split('=');
    const secure = attributes.has('secure');
    const sameSite = (attributes.get('samesite') ?? 'lax').toLowerCase();
    if (secure && url.protocol !== 'https:') return;
    if (sameSite === 'none' && !secure) return;
    const isHostOnly = secure && attributes.get('path') === '/' && !attributes.has('domain');
    if (name.startsWith('__Host-') && !isHostOnly) return;
    this.stored = this.stored.filter((cookie) => cookie.host !== url.hostname || cookie.name !== name);
    if (value.join('=') !== '')
      this.stored.push({ host: url.hostname, name, value: value.join('='), secure, sameSite });
  }
}
