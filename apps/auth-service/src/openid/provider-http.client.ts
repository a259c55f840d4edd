import type { CustomFetch } from 'openid-client';
import { IdentityProviderUnavailableError } from './identity-provider-error';

const TOO_MANY_REQUESTS = 429;

/** A fetch for the OpenID library whose every request, its body included, ends within `timeoutMs`.
 *  It throws IdentityProviderUnavailableError where the provider cannot be reached or says itself that it is out of order. */
export function providerFetch(timeoutMs: number): CustomFetch {
  return async (url, options) => {
    const { host } = new URL(url);
    const { method, headers, redirect } = options;
    // The library's own limit covers each call with all its requests; this one covers each request.
    const signal = AbortSignal.timeout(timeoutMs);
    const answer = await request(host, async () => {
      const response = await fetch(url, { method, headers, redirect, body: options.body ?? null, signal });
      return { response, body: await response.arrayBuffer() };
    });
    const { status, headers: answerHeaders } = answer.response;
    if (status >= 500 || status === TOO_MANY_REQUESTS) {
      throw new IdentityProviderUnavailableError(`${host} answered ${String(status)}`);
    }
    return new Response(answer.body.byteLength === 0 ? null : answer.body, {
      status,
      headers: answerHeaders,
    });
  };
}

async function request<T>(host: string, send: () => Promise<T>): Promise<T> {
  try {
    return await send();
  } catch (cause) {
    throw new IdentityProviderUnavailableError(`${host} cannot be reached`, { cause });
  }
}
