const TOKEN = /eyJ[\w-]{5,}\.[\w-]+\.[\w-]+/g;
const SECRET_FIELD = /("(?:password|sharedSecret)":)"[^"]*"/g;

/** `text` as it may be shown: tokens cut down to their beginning, passwords and secrets gone. */
export function redact(text: string): string {
  return text
    .replace(TOKEN, (token) => `${token.slice(0, 8)}…(${token.length} characters)`)
    .replace(SECRET_FIELD, '$1"…"');
}

/** `text` cut to `length` characters, marked where something is missing. */
export function shorten(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}
