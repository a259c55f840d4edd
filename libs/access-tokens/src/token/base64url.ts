const ALPHABET = /^[A-Za-z0-9_-]+$/;

/**
 * The bytes of unpadded base64url text in its one canonical spelling, else null. Node's own decoder also takes padding,
 * the other alphabet and stray bits in the last character, which would let several texts stand for one token.
 * Source: RFC 7515 section 2, RFC 4648 section 3.5.
 */
export function decodeCanonicalBase64Url(text: string): Buffer | null {
  if (!ALPHABET.test(text)) return null;
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : null;
}
