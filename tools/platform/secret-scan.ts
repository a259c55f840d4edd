/** Shorter values stand in logs by chance. */
export const MIN_SECRET_LENGTH = 8;

/** A secret that stands in a log. Neither names the secret itself: this ends up in test reports, which are
 *  logs too. */
export interface Leak {
  /** Which program wrote it. */
  program: string;
  /** What kind of secret it is, e.g. `password`. */
  secret: string;
  /** The line's beginning, up to where the secret starts. */
  before: string;
}

const SHOWN_CHARACTERS = 120;

/**
 * Looks for secrets in what programs wrote: as they are, and in the forms in which they travel and are logged
 * (JSON string, URL, form, hexadecimal, base64 and base64url anywhere in an encoded text, also of JSON in
 * JSON). A signed token is looked for by its signature, so that it is found with its beginning cut off as
 * well. Reads every text once, however many secrets there are.
 */
export class SecretScanner {
  readonly #byBeginning: ReadonlyMap<string, SoughtForm[]>;

  /**
   * @param secrets kinds by value
   * @throws {RangeError} when a secret is too short to be told from other text
   */
  constructor(secrets: ReadonlyMap<string, string>) {
    this.#byBeginning = indexForms(secrets);
  }

  /** The first place of each secret in what `program` wrote. */
  leaksIn(program: string, log: string): readonly Leak[] {
    return leaksIn(program, log, this.#byBeginning);
  }

  /** The kinds of secrets that stand in `text`, each once. */
  kindsIn(text: string): readonly string[] {
    return [...new Set(this.leaksIn('', text).map(({ secret }) => secret))];
  }
}

/**
 * The first place of each secret in each program's output, see {@link SecretScanner}.
 * @param secrets kinds by value
 * @param logs output by program
 * @throws {RangeError} when a secret is too short to be told from other text
 */
export function findLeaks(
  secrets: ReadonlyMap<string, string>,
  logs: ReadonlyMap<string, string>,
): readonly Leak[] {
  const scanner = new SecretScanner(secrets);
  return [...logs].flatMap(([program, log]) => scanner.leaksIn(program, log));
}

/** One form of a secret. */
interface SoughtForm {
  form: string;
  value: string;
  secret: string;
}

/** Forms by their first characters, as many as the shortest secret has. */
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
  // A body of JSON is itself a member of a line of JSON.
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

/** As in a string of JSON. */
function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

const ENCODINGS = ['base64', 'base64url'] as const;

/** What is the same of an encoded text whatever stands around the secret. @param before bytes before it,
 *  modulo 3 */
function encodedWithin(value: string, encoding: (typeof ENCODINGS)[number], before: number): string {
  const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(value)]);
  const characters = Math.floor((bytes.length * 8) / 6);
  return bytes.toString(encoding).slice(Math.ceil((before * 8) / 6), characters);
}
