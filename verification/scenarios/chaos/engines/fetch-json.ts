/**
 * Fetches JSON with a timeout of 3 s.
 * @throws {Error} that names the URL, on an error status or without a response
 */
export async function fetchJson<T>(url: string, init: RequestInit = {}): Promise<T> {
  const response = await fetch(url, { ...init, signal: AbortSignal.timeout(3_000) }).catch((error: Error) => {
    // The error itself only says that the fetch failed.
    const cause = error.cause instanceof Error ? error.cause : error;
    throw new Error(`${url}: ${cause.message}`, { cause });
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} responded ${response.status} ${text}`);
  return (text === '' ? null : JSON.parse(text)) as T;
}
