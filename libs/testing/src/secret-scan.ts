import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { MIN_SECRET_LENGTH, secretsIn } from './secrets-in-traffic';
import type { Half } from './secrets-in-traffic';

/** A secret that stands in a log. Neither names the secret itself: this ends up in test reports, which are logs too. */
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

/** How much was scanned. */
export interface ScannedRecording {
  secrets: number;
  programs: number;
  characters: number;
}

/**
 * Searches all logs of a recording for every secret that was remembered or sent over the wire.
 * @param folder as filled by `recordedLog`, `rememberSecret` and record-traffic.cjs
 * @param harmless texts that count as no secret, wherever they were sent
 * @throws {Error} naming the places, never the secrets; also when there was traffic but no log
 */
export function scanRecording(folder: string, harmless: readonly string[] = []): ScannedRecording {
  const secrets = new Map<string, string>();
  const logs = new Map<string, string>();
  for (const name of readdirSync(folder)) {
    const text = readFileSync(join(folder, name), 'utf8');
    if (name.endsWith('.log')) logs.set(name, text);
    if (name.endsWith('.secrets'))
      for (const [value, kind] of linesOf<[string, string]>(text)) secrets.set(value, kind);
    if (name.endsWith('.traffic'))
      for (const { request, response } of linesOf<{ request: Half; response: Half }>(text))
        for (const half of [request, response])
          for (const [value, kind] of secretsIn(half)) secrets.set(value, kind);
  }
  const notSecret = [...harmless, '[object Object]'];
  for (const value of secrets.keys())
    if (notSecret.some((text) => text.includes(value))) secrets.delete(value);
  const characters = [...logs.values()].reduce((sum, { length }) => sum + length, 0);
  if (secrets.size > 0 && characters === 0) throw new Error('secrets were used, but no log was recorded');
  const leaks = findLeaks(secrets, logs);
  if (leaks.length > 0) {
    const places = leaks.map(({ program, secret, before }) => `  ${secret} in ${program} after: ${before}`);
    throw new Error(`${leaks.length} secrets stand in the logs of this run:\n${places.join('\n')}`);
  }
  return { secrets: secrets.size, programs: logs.size, characters };
}

function linesOf<T>(text: string): T[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T);
}
