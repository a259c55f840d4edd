import { SignInBrowser } from './sign-in-browser';

interface Cookie {
  host: string;
  name: string;
  value: string;
  secure: boolean;
  sameSite: string;
}

/**
 * A browser that keeps and sends cookies by the rules that real ones have for Secure, SameSite and `__Host-`.
 * Source: RFC 6265bis, sections 5.6 and 5.7.3. A site is a host here: the tests' hosts are addresses.
 */
export class StrictBrowser extends SignInBrowser {
  private kept: Cookie[] = [];
  /** The page that is shown, whose form is posted next. */
  private page: URL | null = null;

  /** Names of the cookies kept for an address. */
  cookieNames(url: string): string[] {
    return this.kept.filter(({ host }) => host === new URL(url).hostname).map(({ name }) => name);
  }

  protected override async send(address: string, init: RequestInit): Promise<Response> {
    const url = new URL(address);
    const sent = this.kept.filter((cookie) => this.isSent(cookie, url, init.method ?? 'GET'));
    const cookie = sent.map(({ name, value }) => `${name}=${value}`).join('; ');
    const headers = { ...(init.headers as Record<string, string>), ...(cookie === '' ? {} : { cookie }) };
    const response = await fetch(url, { ...init, headers, redirect: 'manual' });
    for (const line of response.headers.getSetCookie()) this.take(line, url);
    if (!response.headers.has('location')) this.page = url;
    return response;
  }

  private isSent({ host, secure, sameSite }: Cookie, url: URL, method: string): boolean {
    if (host !== url.hostname || (secure && url.protocol !== 'https:')) return false;
    const crossSite = this.page !== null && this.page.hostname !== url.hostname;
    return !crossSite || sameSite === 'none' || (sameSite === 'lax' && method === 'GET');
  }

  private take(line: string, url: URL): void {
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
    this.kept = this.kept.filter((cookie) => cookie.host !== url.hostname || cookie.name !== name);
    if (value.join('=') !== '')
      this.kept.push({ host: url.hostname, name, value: value.join('='), secure, sameSite });
  }
}
