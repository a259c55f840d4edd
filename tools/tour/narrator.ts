import type { Difference } from './expectations.ts';

/** Destination of the narration: standard output, or a test's collector. */
export interface Screen {
  write(text: string): void;
  /** Characters per line. */
  width: number;
  colour: boolean;
}

/** Returns standard output, with colours only on a terminal and without NO_COLOR. */
export function terminalScreen(): Screen {
  return {
    write: (text) => void process.stdout.write(text),
    width: Math.min(process.stdout.columns ?? 120, 140),
    colour: process.stdout.isTTY === true && !process.env['NO_COLOR'],
  };
}

const STYLES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const;
const INDENT = ' '.repeat(5);
const LABEL_WIDTH = 7;

/** Prints the walk: for each step the request, the response and one line of explanation. */
export class Narrator {
  readonly #screen: Screen;

  constructor(screen: Screen) {
    this.#screen = screen;
  }

  heading(text: string): void {
    this.#line(`\n${this.#style('bold', text)}`);
  }

  plain(text: string): void {
    this.#line(text);
  }

  step(number: number, title: string): void {
    this.#line(`\n${this.#style('cyan', String(number).padStart(3))}  ${this.#style('bold', title)}`);
  }

  request(method: string, url: string, headers: Readonly<Record<string, string>>, body: string | null): void {
    this.#labelled(method, url, null);
    for (const [name, value] of Object.entries(headers)) this.#labelled('', `${name}: ${value}`, 'dim');
    if (body !== null) this.#labelled('', body, 'dim');
  }

  response(status: number, body: string, note: string): void {
    const colour = status < 300 ? 'green' : status < 500 ? 'yellow' : 'red';
    this.#line(
      `${INDENT}${this.#style(colour, String(status).padEnd(LABEL_WIDTH))}${this.#style('dim', note)}`,
    );
    if (body !== '') this.#labelled('', body, 'dim');
  }

  explanation(text: string): void {
    this.#line(`${INDENT}${this.#style('green', '✓'.padEnd(LABEL_WIDTH))}${text}`);
  }

  difference(difference: Difference): void {
    const mark = this.#style('red', '✗'.padEnd(LABEL_WIDTH));
    this.#line(`${INDENT}${mark}${this.#style('bold', `${difference.what} is not as expected`)}`);
    this.#labelled('', `expected  ${difference.expected}`, null);
    this.#labelled('', `actual    ${difference.actual}`, null);
  }

  end(passed: boolean, text: string): void {
    this.#line(`\n${this.#style(passed ? 'green' : 'red', text)}\n`);
  }

  #labelled(label: string, text: string, style: keyof typeof STYLES | null): void {
    const room = this.#screen.width - INDENT.length - LABEL_WIDTH;
    const shown = shorten(redact(text.replaceAll('\n', ' ')), room);
    this.#line(`${INDENT}${label.padEnd(LABEL_WIDTH)}${style === null ? shown : this.#style(style, shown)}`);
  }

  #style(style: keyof typeof STYLES, text: string): string {
    return this.#screen.colour ? `\u001b[${STYLES[style]}m${text}\u001b[0m` : text;
  }

  #line(text: string): void {
    this.#screen.write(`${text}\n`);
  }
}

const TOKEN = /eyJ[\w-]{5,}\.[\w-]+\.[\w-]+/g;
const SECRET_FIELD = /("(?:password|sharedSecret|code|codeVerifier)":)"[^"]*"/g;
const FORM_SECRET = /\b((?:password|code)=)[^&\s]*/g;
const HIDDEN_FIELD = /(<input type="hidden" name="[^"]*" value=)"[^"]*"/g;
const CREDENTIALS = /^(cookie: |authorization: Basic ).*/;

/**
 * Returns `text` for display: tokens are cut to their first characters; passwords, secrets, codes, hidden
 * fields, cookies and Basic credentials are left out.
 */
export function redact(text: string): string {
  return text
    .replace(TOKEN, (token) => `${token.slice(0, 8)}…(${token.length} characters)`)
    .replace(SECRET_FIELD, '$1"…"')
    .replace(FORM_SECRET, '$1…')
    .replace(HIDDEN_FIELD, '$1"…"')
    .replace(CREDENTIALS, '$1…');
}

/** Cuts `text` to `length` characters, and marks the cut. */
export function shorten(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}
