/** A secret that stands in a log. Neither names the secret itself: this ends up in test reports, which are logs too. */
export interface Leak {
  /** Which program wrote it. */
  program: string;
  /** What kind of secret it is, e.g. `password`. */
  secret: string;
  /** The line's beginning, up to where the secret starts. */
  before: string;
}

/** Shorter values stand in logs by chance. */
export const MIN_SECRET_LENGTH = 8;

const SHOWN_CHARACTERS = 120;

/**
 * Looks for secrets in what programs wrote: as they are, and in the forms in which they travel and are logged (JSON string, URL, form,
 * base64 and base64url at the start of an encoded text). A signed token is looked for by its signature, so that it is found with
 * its beginning cut off as well. Reads every log once, however many secrets there are.
 * @param secrets kinds by value
 * @param logs output by program
 * @returns the first place of each secret in each program
 * @throws {RangeError} when a secret is too short to be told from other text
 */
export function findLeaks(
  secrets: ReadonlyMap<string, string>,
  logs: ReadonlyMap<string, string>,
): readonly Leak[] {
  const byBeginning = indexForms(secrets);
  return [...logs].flatMap(([program, log]) => leaksIn(program, log, byBeginning));
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
  const bytes = Buffer.from(value);
  // Without the last characters, which depend on what follows the secret in the encoded text.
  const whole = Math.floor(bytes.length / 3) * 3;
  const encoded = bytes.subarray(0, whole);
  return [
    value,
    JSON.stringify(value).slice(1, -1),
    encodeURIComponent(value),
    new URLSearchParams([['', value]]).toString().slice(1),
    encoded.toString('base64'),
    encoded.toString('base64url'),
  ];
}
