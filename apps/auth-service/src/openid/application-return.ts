import { z } from 'zod';
import { TokenRejectionReason } from '../rejections/token-rejection';
import type { Rejection } from '../rejections/token-rejection';

/** Where a browser goes when its sign-in has ended, and the `state` that it takes along unchanged. */
export interface ReturnAddress {
  url: string;
  state: string | null;
}

/**
 * A sign-in that ends at an application: it gets a code, which whoever knows the verifier of the challenge
 * exchanges for tokens.
 */
export interface ApplicationReturn extends ReturnAddress {
  applicationKey: string;
  /** PKCE, S256: base64url of the verifier's SHA-256. */
  codeChallenge: string;
}

/** What the errors of RFC 6749 section 4.1.2.1 are called. */
type ReturnError =
  'invalid_request' | 'unauthorized_client' | 'access_denied' | 'server_error' | 'temporarily_unavailable';

/** The address of a browser's application, with parameters added to those that it was registered with. */
export function returnLocation(
  { url, state }: ReturnAddress,
  result: { code: string } | { error: ReturnError },
): string {
  const location = new URL(url);
  for (const [name, value] of Object.entries(result)) location.searchParams.append(name, value);
  if (state !== null) location.searchParams.append('state', state);
  return location.href;
}

/** What an application is told of a rejection. */
export function rejectionError(reason: Rejection): ReturnError {
  if (reason === TokenRejectionReason.AuthenticationFailed) return 'access_denied';
  return reason === TokenRejectionReason.InvalidGrant ? 'unauthorized_client' : 'invalid_request';
}

/** Requests whose browsers go back to an application, whatever becomes of the request. */
const returning = new WeakMap<object, ReturnAddress>();

/** From here on this request is responded to at the application's address. */
export function returnTo(request: { raw: object }, address: ReturnAddress): void {
  returning.set(request.raw, address);
}

export function returnAddressOf(request: { raw: object }): ReturnAddress | null {
  return returning.get(request.raw) ?? null;
}

/** As much of a response as a redirect needs. */
interface Redirectable<Reply> {
  code(status: number): Reply;
  headers(headers: Record<string, string>): Reply;
}

/** Makes a response a redirect whose address no cache and no further page learns. */
export function redirect<Reply extends Redirectable<Reply>>(
  reply: Reply,
  status: 302 | 303,
  location: string,
): Reply {
  return reply
    .code(status)
    .headers({ location, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' });
}

/** A `state` of an application: its own business, but fit for an address and a log. */
export const returnState = z
  .string()
  .max(1_024)
  .regex(/^[^\p{Cc}\p{Cs}]*$/u);
export const codeChallenge = z.string().regex(/^[A-Za-z0-9_-]{43}$/);
/** A verifier of RFC 7636. */
export const codeVerifier = z.string().regex(/^[A-Za-z0-9._~-]{43,128}$/, 'must be a PKCE code verifier');

const LOOPBACK = new Set(['127.0.0.1', '[::1]', 'localhost']);
const MAX_URL_LENGTH = 2_000;

/**
 * Whether an address may be registered: https, or http on this machine (development, native applications),
 * without fragment and user. It has to be spelt as browsers spell it, because it is compared letter by
 * letter.
 */
export function isReturnUrl(text: string): boolean {
  if (text.length > MAX_URL_LENGTH || !URL.canParse(text)) return false;
  const { protocol, hostname, hash, username, password, href } = new URL(text);
  const isSecure = protocol === 'https:' || (protocol === 'http:' && LOOPBACK.has(hostname));
  return isSecure && href === text && hash === '' && !text.includes('#') && username + password === '';
}
