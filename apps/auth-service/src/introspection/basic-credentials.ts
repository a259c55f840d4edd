/** The key and the secret in a Basic `Authorization` header, both form-encoded as RFC 6749 section 2.3.1 has it; null for anything else. */
export function basicCredentials(header: string | undefined): { key: string; secret: string } | null {
  const encoded = /^Basic +([A-Za-z0-9+/]+={0,2})$/i.exec(header ?? '')?.[1];
  if (encoded === undefined) return null;
  const text = Buffer.from(encoded, 'base64').toString();
  const colon = text.indexOf(':');
  if (colon < 1 || colon === text.length - 1) return null;
  try {
    const [key, secret] = [text.slice(0, colon), text.slice(colon + 1)].map(formDecoded) as [string, string];
    return { key, secret };
  } catch (error) {
    if (error instanceof URIError) return null;
    throw error;
  }
}

function formDecoded(text: string): string {
  return decodeURIComponent(text.replaceAll('+', ' '));
}
