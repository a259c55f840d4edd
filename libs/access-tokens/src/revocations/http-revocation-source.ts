import { authServiceAddress } from '../keys/jwks';
import { StaleRevocationPosition, isRevocation } from './revocation-index';
import type { Revocation, RevocationPage, RevocationSource } from './revocation-index';

export interface HttpRevocationSourceOptions {
  /** Address of auth-service, e.g. `http://127.0.0.1:3001`. */
  authServiceUrl: string;
  /** Returns a token of the service's own identity, which must be an internal administrator. */
  bearerToken(): Promise<string>;
  /** Called with a token that was refused with 401, so that the next `bearerToken` returns a new one. */
  onTokenRefused?(token: string): void;
  fetch?: typeof globalThis.fetch;
  /** Maximum number of revocations per page. Default 2,000: larger pages would make the heap grow. */
  pageSize?: number;
  /** Timeout of one page request, in milliseconds. Default 5,000. */
  timeoutMs?: number;
}

const PAGE_SIZE = 2_000;
const BAD_REQUEST = 400;
/** Response header with the current time of the clock that dates revocations. */
const AS_OF_HEADER = 'revocations-as-of';

/** GET /auth/revocations could not be read. The error holds neither the token nor the response body. */
export class RevocationListError extends Error {
  override readonly name = 'RevocationListError';
}

/**
 * Reads revocations from GET /auth/revocations page by page. Each response links to the next page in a `Link`
 * header with `rel="next"` (RFC 8288); the last page has no such link.
 */
export function httpRevocationSource(options: HttpRevocationSourceOptions): RevocationSource {
  return {
    changesSince: (since, signal, reportTime) => readPages(options, since, signal, reportTime),
    readPage: (from, signal) => readPage(options, from, signal),
  };
}

async function* readPages(
  options: HttpRevocationSourceOptions,
  since: Date,
  signal: AbortSignal | undefined,
  reportTime: ((now: Date) => void) | undefined,
): AsyncGenerator<readonly Revocation[]> {
  for (let from: Date | string | null = since; from !== null;) {
    const page: RevocationPage = await readPage(options, from, signal);
    if (page.present !== null) reportTime?.(page.present);
    yield page.revocations;
    from = page.next;
  }
}

/** @param from a date, or the URL of a page */
async function readPage(
  options: HttpRevocationSourceOptions,
  from: Date | string,
  signal: AbortSignal | undefined,
): Promise<RevocationPage> {
  const address = typeof from === 'string' ? new URL(from) : firstPage(options, from);
  const response = await requestPage(options, address, signal);
  if (response.status === BAD_REQUEST && typeof from === 'string')
    throw new StaleRevocationPosition(
      'GET /auth/revocations no longer accepts the position of the next page',
    );
  if (response.status !== 200)
    throw new RevocationListError(`GET /auth/revocations responded ${response.status}`);
  const present = new Date(response.headers.get(AS_OF_HEADER) ?? Number.NaN);
  return {
    revocations: await readRevocations(response),
    next: nextPage(response, address)?.href ?? null,
    present: Number.isNaN(present.getTime()) ? null : present,
  };
}

function firstPage({ authServiceUrl, pageSize = PAGE_SIZE }: HttpRevocationSourceOptions, since: Date): URL {
  const address = authServiceAddress(authServiceUrl, 'auth/revocations');
  address.searchParams.set('minDate', since.toISOString());
  address.searchParams.set('domains', 'all');
  address.searchParams.set('limit', String(pageSize));
  return address;
}

async function requestPage(
  options: HttpRevocationSourceOptions,
  address: URL,
  signal: AbortSignal | undefined,
): Promise<Response> {
  const token = await options.bearerToken();
  const timeout = AbortSignal.timeout(options.timeoutMs ?? 5_000);
  const response = await (options.fetch ?? globalThis.fetch)(address, {
    headers: { authorization: `Bearer ${token}`, accept: 'application/json' },
    redirect: 'error',
    signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
  });
  if (response.status !== 200) await response.body?.cancel();
  if (response.status === 401) options.onTokenRefused?.(token);
  return response;
}

async function readRevocations(response: Response): Promise<readonly Revocation[]> {
  const body: unknown = await response.json();
  if (Array.isArray(body) && body.every(isRevocation)) return body;
  throw new RevocationListError(
    'GET /auth/revocations returned something other than a list of revocations known to this version',
  );
}

const NEXT_LINK = /<([^>]*)>\s*;[^,]*\brel="?next"?/;

/**
 * Returns the URL of the next page, or null on the last page.
 * @throws {RevocationListError} when the next page is on another origin, which must not receive our token
 */
function nextPage(response: Response, current: URL): URL | null {
  const target = NEXT_LINK.exec(response.headers.get('link') ?? '')?.[1];
  if (target === undefined) return null;
  const address = new URL(target, current);
  if (address.origin !== current.origin) throw new RevocationListError('the next page is on another server');
  return address;
}
