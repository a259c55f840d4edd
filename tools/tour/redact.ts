const TOKEN = /eyJ[\w-]{5,}\.[\w-]+\.[\w-]+/g;
const SECRET_FIELD = /("(?:password|sharedSecret)":)"[^"]*"/g;
const FORM_SECRET = /\b((?:password|code)=)[^&\s]*/g;
const HIDDEN_FIELD = /(<input type="hidden" name="[^"]*" value=)"[^"]*"/g;
const COOKIES = /^(cookie: ).*/;

/** `text` as it may be shown: tokens cut down to their beginning; passwords, secrets, codes, hidden fields and cookies gone. */
export function redact(text: string): string {
  return text
    .replace(TOKEN, (token) => `${token.slice(0, 8)}…(${token.length} characters)`)
    .replace(SECRET_FIELD, '$1"…"')
    .replace(FORM_SECRET, '$1…')
    .replace(HIDDEN_FIELD, '$1"…"')
    .replace(COOKIES, '$1…');
}

/** `text` cut to `length` characters, marked where something is missing. */
export function shorten(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}
