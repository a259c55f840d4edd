import { Difference } from './expectations.ts';

/** The parts of a cookie that the tour's two servers use. */
interface Cookie {
  name: string;
  value: string;
  path: string;
}

/**
 * A browser's cookies. As in browsers, all ports of a host share them, and a cookie is sent to its path and
 * below. Domains are ignored, and so are lifetimes, because the walk ends before any cookie expires.
 */
export class CookieJar {
  readonly #hosts = new Map<string, Map<string, Cookie>>();

  /** Stores the cookies that the response of `url` sets; an empty value deletes a cookie. */
  take(url: string, headers: Headers): void {
    const cookies = this.#cookiesOf(url);
    for (const line of headers.getSetCookie()) {
      const cookie = parseSetCookie(line);
      const key = `${cookie.name};${cookie.path}`;
      if (cookie.value === '') cookies.delete(key);
      else cookies.set(key, cookie);
    }
  }

  /** Returns the headers of a request to `url`: a Cookie header, or none. */
  headersFor(url: string): Record<string, string> {
    const { pathname } = new URL(url);
    const pairs = [...this.#cookiesOf(url).values()]
      .filter(({ path }) => isBelow(pathname, path))
      .map(({ name, value }) => `${name}=${value}`);
    return pairs.length === 0 ? {} : { cookie: pairs.join('; ') };
  }

  #cookiesOf(url: string): Map<string, Cookie> {
    const { hostname } = new URL(url);
    const cookies = this.#hosts.get(hostname) ?? new Map<string, Cookie>();
    this.#hosts.set(hostname, cookies);
    return cookies;
  }
}

function parseSetCookie(line: string): Cookie {
  const [pair = '', ...attributes] = line.split(';').map((part) => part.trim());
  const name = pair.slice(0, Math.max(0, pair.indexOf('=')));
  const path = attributes.find((attribute) => /^path=/i.test(attribute))?.slice('path='.length);
  return { name, value: pair.slice(name.length + 1), path: path ?? '/' };
}

function isBelow(pathname: string, path: string): boolean {
  return pathname === path || pathname.startsWith(path.endsWith('/') ? path : `${path}/`);
}

/** A form of an HTML page: its target, and the fields that the page has already filled in. */
export interface PageForm {
  action: string;
  hidden: Record<string, string>;
}

/**
 * Returns the only form of a page. `pageUrl` is the base of a relative action. Parses what the identity
 * provider writes, not HTML in general.
 * @throws {Difference} if there is no form
 */
export function readForm(html: string, pageUrl: string): PageForm {
  const form = /<form\b[^>]*>/i.exec(html)?.[0];
  const action = form === undefined ? undefined : attribute(form, 'action');
  if (action === undefined) throw new Difference('the page', 'a form', html);
  const inputs = (html.match(/<input\b[^>]*>/gi) ?? []).filter(
    (input) => attribute(input, 'type') === 'hidden',
  );
  const hidden = inputs.map((input) => [attribute(input, 'name') ?? '', attribute(input, 'value') ?? '']);
  return { action: new URL(action, pageUrl).href, hidden: Object.fromEntries(hidden) as PageForm['hidden'] };
}

function attribute(tag: string, name: string): string | undefined {
  const value = new RegExp(`\\s${name}="([^"]*)"`, 'i').exec(tag)?.[1];
  return value?.replace(/&(?:#(\d+)|#x([\da-f]+)|(amp|quot|lt|gt));/gi, decodeEntity);
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', quot: '"', lt: '<', gt: '>' };

function decodeEntity(_entity: string, decimal?: string, hexadecimal?: string, name?: string): string {
  if (name !== undefined) return ENTITIES[name.toLowerCase()] ?? '';
  return String.fromCodePoint(decimal === undefined ? parseInt(hexadecimal ?? '', 16) : Number(decimal));
}
