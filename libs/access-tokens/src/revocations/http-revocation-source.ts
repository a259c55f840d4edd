import { z } from 'zod';
import { authServiceAddress } from '../keys/jwks';
import { revocation } from './revocation-index';
import type { Revocation, RevocationSource } from './revocation-index';

export interface HttpRevocationSourceOptions {
  /** Address of auth-service, e.g. `http://127.0.0.1:3001`. */
  authServiceUrl: string;
  /** A token of the service's own identity, which must be an internal administrator's. */
  bearerToken(): Promise<string>;
  /** Told of a token that was refused with 401, so that the next `bearerToken` brings another. */
  onTokenRefused?(token: string): void;
  fetch?: typeof globalThis.fetch;
  /** Revocations per request. Default 10,000. */
  pageSize?: number;
  /** Longest wait for one page, in milliseconds. Default 5,000. */
  timeoutMs?: number;
}

const page = z.array(revocation);
/** What the clock that dates revocations said. */
const PRESENT_HEADER = 'revocations-as-of';

/** GET /auth/revocations could not be read. Holds neither the token nor the answer's body. */
export class RevocationListError extends Error {
  override readonly name = 'RevocationListError';
}

/** Reads revocations from GET /auth/revocations, page by page: each answer names the next page in a `Link` header with `rel="next"` (RFC
 *  8288); without one it is the last. */
export function httpRevocationSource(options: HttpRevocationSourceOptions): RevocationSource {
  return { changesSince: (since, signal, tellPresent) => readPages(options, since, signal, tellPresent) };
}

async function* readPages(
  options: HttpRevocationSourceOptions,
  since: Date,
  signal: AbortSignal | undefined,
  tellPresent: ((present: Date) => void) | undefined,
): AsyncGenerator<readonly Revocation[]> {
  let address: URL | null = firstPage(options, since);
  while (address) {
    const response: Response = await requestPage(options, address, signal);
    const present = new Date(response.headers.get(PRESENT_HEADER) ?? Number.NaN);
    if (!Number.isNaN(present.getTime())) tellPresent?.(present);
    yield await readPage(response);
    address = nextPage(response, address);
  }
}

function firstPage({ authServiceUrl, pageSize = 10_000 }: HttpRevocationSourceOptions, since: Date): URL {
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
  if (response.status === 200) return response;
  await response.body?.cancel();
  if (response.status === 401) options.onTokenRefused?.(token);
  throw new RevocationListError(`GET /auth/revocations answered ${response.status}`);
}

async function readPage(response: Response): Promise<readonly Revocation[]> {
  const read = page.safeParse(await response.json());
  if (!read.success)
    throw new RevocationListError('GET /auth/revocations answered something else', { cause: read.error });
  return read.data;
}

const NEXT_LINK = /<([^>]*)>\s*;[^,]*\brel="?next"?/;

/** @throws {RevocationListError} when the next page is said to be on another server: our token goes nowhere else */
function nextPage(response: Response, current: URL): URL | null {
  const target = NEXT_LINK.exec(response.headers.get('link') ?? '')?.[1];
  if (target === undefined) return null;
  const address = new URL(target, current);
  if (address.origin !== current.origin) throw new RevocationListError('the next page is on another server');
  return address;
}
