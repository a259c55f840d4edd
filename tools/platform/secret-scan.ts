/** Minimum length of a secret; logs contain shorter texts by chance. */
export const MIN_SECRET_LENGTH = 8;

/**
 * A secret that was found in a log. It does not contain the secret itself, because it is printed in test
 * reports, which are logs too.
 */
export interface Leak {
  /** Program that wrote the log. */
  program: string;
  /** Kind of the secret, e.g. `password`. */
  secret: string;
  /** Beginning of the line, up to the secret. */
  before: string;
}

/** Maximum length of `Leak.before`. */
const SHOWN_CHARACTERS = 120;

/**
 * Searches the output of programs for secrets in the forms in which they are sent and logged: plain text,
 * JSON string, JSON string within a JSON string, URL, form, hexadecimal, and base64 or base64url, also within
 * a longer encoded text. A signed token is found by its signature, even if its beginning is cut off. Reads
 * every text once, however many secrets there are.
 */
export class SecretScanner {
  readonly #byBeginning: ReadonlyMap<string, SoughtForm[]>;

  /**
   * @param secrets value → kind
   * @throws {RangeError} if a secret is too short to be distinguished from other text
   */
  constructor(secrets: ReadonlyMap<string, string>) {
    this.#byBeginning = indexForms(secrets);
  }

  /** Returns the first occurrence of each secret in the output of `program`. */
  leaksIn(program: string, log: string): readonly Leak[] {
    return leaksIn(program, log, this.#byBeginning);
  }

  /** Returns the kinds of the secrets in `text`, each once. */
  kindsIn(text: string): readonly string[] {
    return [...new Set(this.leaksIn('', text).map(({ secret }) => secret))];
  }
}

/**
 * Returns the first occurrence of each secret in each program's output, see {@link SecretScanner}.
 * @param secrets value → kind
 * @param logs program → output
 * @throws {RangeError} if a secret is too short to be distinguished from other text
 */
export function findLeaks(
  secrets: ReadonlyMap<string, string>,
  logs: ReadonlyMap<string, string>,
): readonly Leak[] {
  const scanner = new SecretScanner(secrets);
  return [...logs].flatMap(([program, log]) => scanner.leaksIn(program, log));
}

/** A form in which a secret may appear. */
interface SoughtForm {
  form: string;
  value: string;
  secret: string;
}

/** Indexes the forms of all secrets by their first MIN_SECRET_LENGTH characters. */
function indexForms(secrets: ReadonlyMap<string, string>): ReadonlyMap<string, SoughtForm[]> {
  const byBeginning = new Map<string, SoughtForm[]>();
  for (const [value, secret] of secrets) {
    if (value.length < MIN_SECRET_LENGTH) throw new RangeError(`the ${secret} is too short to look for`);
    for (const form of new Set(formsOf(value))) {
      const beginning = form.slice(0, MIN_SECRET_LENGTH);
      const others = byBeginning.get(beginning);
      if (others === undefined) byBeginning.set(beginning, [{ form, value, secret }]);
      else others.push({ form, value, secret });
    }
  }
  return byBeginning;
}

function leaksIn(program: string, log: string, byBeginning: ReadonlyMap<string, SoughtForm[]>): Leak[] {
  const leaks = new Map<string, Leak>();
  for (let at = 0; at <= log.length - MIN_SECRET_LENGTH; at += 1) {
    for (const { form, value, secret } of byBeginning.get(log.slice(at, at + MIN_SECRET_LENGTH)) ?? []) {
      if (leaks.has(value) || !log.startsWith(form, at)) continue;
      const lineStart = Math.max(log.lastIndexOf('\n', at) + 1, at - SHOWN_CHARACTERS);
      leaks.set(value, { program, secret, before: log.slice(lineStart, at) });
    }
  }
  return [...leaks.values()];
}

function formsOf(value: string): readonly string[] {
  const signature = /^eyJ[\w-]+\.[\w-]*\.([\w-]{16,})$/.exec(value)?.[1];
  if (signature !== undefined) return [signature];
  // A JSON body in a line of JSON is escaped twice.
  const texts = [value, escaped(value), escaped(escaped(value))];
  const forms = texts.flatMap((text) => [
    text,
    encodeURIComponent(text),
    new URLSearchParams([['', text]]).toString().slice(1),
    Buffer.from(text).toString('hex'),
    ...ENCODINGS.flatMap((encoding) => [0, 1, 2].map((before) => encodedWithin(text, encoding, before))),
  ]);
  return forms.filter(({ length }) => length >= MIN_SECRET_LENGTH);
}

/** Escapes a text as in a JSON string. */
function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

const ENCODINGS = ['base64', 'base64url'] as const;

/**
 * Returns the characters of an encoded text that are the same whatever precedes and follows the secret.
 * @param before number of bytes before it, modulo 3
 */
function encodedWithin(value: string, encoding: (typeof ENCODINGS)[number], before: number): string {
  const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(value)]);
  const characters = Math.floor((bytes.length * 8) / 6);
  return bytes.toString(encoding).slice(Math.ceil((before * 8) / 6), characters);
}
