/** The JSON that an engine answers. @throws {Error} naming the URL when it does not, or refuses */
export async function ask<T>(url: string, init: RequestInit = {}): Promise<T> {
  const response = await fetch(url, { ...init, signal: AbortSignal.timeout(3_000) }).catch((error: Error) => {
    // By itself it says only that a fetch failed.
    const cause = error.cause instanceof Error ? error.cause : error;
    throw new Error(`${url}: ${cause.message}`, { cause });
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} answered ${response.status} ${text}`);
  return (text === '' ? null : JSON.parse(text)) as T;
}
