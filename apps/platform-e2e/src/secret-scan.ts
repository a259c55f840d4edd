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
 * its beginning cut off as well.
 * @param secrets kinds by value
 * @param logs output by program
 * @throws {RangeError} when a secret is too short to be told from other text
 */
export function findLeaks(
  secrets: ReadonlyMap<string, string>,
  logs: ReadonlyMap<string, string>,
): readonly Leak[] {
  const leaks: Leak[] = [];
  for (const [value, secret] of secrets) {
    if (value.length < MIN_SECRET_LENGTH) throw new RangeError(`the ${secret} is too short to look for`);
    for (const [program, log] of logs) {
      const at = firstOf(log, formsOf(value));
      if (at === null) continue;
      const lineStart = Math.max(log.lastIndexOf('\n', at) + 1, at - SHOWN_CHARACTERS);
      leaks.push({ program, secret, before: log.slice(lineStart, at) });
    }
  }
  return leaks;
}

function firstOf(log: string, forms: readonly string[]): number | null {
  const found = forms.map((form) => log.indexOf(form)).filter((at) => at >= 0);
  return found.length === 0 ? null : Math.min(...found);
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
