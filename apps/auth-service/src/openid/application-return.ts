import { z } from 'zod';
import { TokenRejectionReason } from '../rejections/token-rejection';
import type { Rejection } from '../rejections/token-rejection';

/** The address to which the browser returns after a sign-in, with the `state` to return unchanged. */
export interface ReturnAddress {
  url: string;
  state: string | null;
}

/**
 * A sign-in that returns to an application. The application gets a code; exchanging it for tokens needs the
 * verifier of the PKCE challenge.
 */
export interface ApplicationReturn extends ReturnAddress {
  applicationKey: string;
  /** PKCE, S256: base64url of the verifier's SHA-256. */
  codeChallenge: string;
}

/** Error codes of RFC 6749, section 4.1.2.1. */
type ReturnError =
  'invalid_request' | 'unauthorized_client' | 'access_denied' | 'server_error' | 'temporarily_unavailable';

/** Returns the application's address with the result and `state` appended to its registered parameters. */
export function returnLocation(
  { url, state }: ReturnAddress,
  result: { code: string } | { error: ReturnError },
): string {
  const location = new URL(url);
  for (const [name, value] of Object.entries(result)) location.searchParams.append(name, value);
  if (state !== null) location.searchParams.append('state', state);
  return location.href;
}

/** Returns the OAuth error code that reports a rejection to an application. */
export function rejectionError(reason: Rejection): ReturnError {
  if (reason === TokenRejectionReason.AuthenticationFailed) return 'access_denied';
  return reason === TokenRejectionReason.InvalidGrant ? 'unauthorized_client' : 'invalid_request';
}

/** Requests whose response redirects the browser to an application, on success and on failure. */
const returning = new WeakMap<object, ReturnAddress>();

/** Makes any later response to this request redirect to the application's address. */
export function returnTo(request: { raw: object }, address: ReturnAddress): void {
  returning.set(request.raw, address);
}

export function returnAddressOf(request: { raw: object }): ReturnAddress | null {
  return returning.get(request.raw) ?? null;
}

/** The part of a reply that a redirect needs. */
interface Redirectable<Reply> {
  code(status: number): Reply;
  headers(headers: Record<string, string>): Reply;
}

/** Redirects without caching the address or revealing it to the next page. */
export function redirect<Reply extends Redirectable<Reply>>(
  reply: Reply,
  status: 302 | 303,
  location: string,
): Reply {
  return reply
    .code(status)
    .headers({ location, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' });
}

/** An application's opaque `state`, limited to characters that fit a URL and a log. */
export const returnState = z
  .string()
  .max(1_024)
  .regex(/^[^\p{Cc}\p{Cs}]*$/u);
export const codeChallenge = z.string().regex(/^[A-Za-z0-9_-]{43}$/);
/** A PKCE verifier (RFC 7636). */
export const codeVerifier = z.string().regex(/^[A-Za-z0-9._~-]{43,128}$/, 'must be a PKCE code verifier');

const LOOPBACK = new Set(['127.0.0.1', '[::1]', 'localhost']);
const MAX_URL_LENGTH = 2_000;

/**
 * Whether an address may be registered: https, or http to a loopback host (development, native applications),
 * without fragment or user. It must be spelt as browsers normalise it, because it is compared character by
 * character.
 */
export function isReturnUrl(text: string): boolean {
  if (text.length > MAX_URL_LENGTH || !URL.canParse(text)) return false;
  const { protocol, hostname, hash, username, password, href } = new URL(text);
  const isSecure = protocol === 'https:' || (protocol === 'http:' && LOOPBACK.has(hostname));
  return isSecure && href === text && hash === '' && !text.includes('#') && username + password === '';
}
