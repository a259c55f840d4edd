import { JsonScanner } from './json-scanner';

/**
 * A valid JSON text, exactly as its writer sent it. Never parsed and printed again: that would round its
 * numbers.
 */
export type JsonText = string & { readonly __brand: 'JsonText' };

/** The longest text of one value, in bytes of UTF-8. */
export const MAX_VALUE_BYTES = 256 * 1024;
/** How many arrays and objects may be nested in one value; a scalar has none. */
export const MAX_VALUE_DEPTH = 512;
/** The longest body of a write, in bytes. Twice the value's limit leaves room for what is around it. */
export const MAX_BODY_BYTES = 512 * 1024;

/** The request's settingValue cannot be taken. The message may be shown; it repeats nothing of the value. */
export class InvalidSettingValueError extends Error {
  override readonly name = 'InvalidSettingValueError';
}

const MEMBER = 'settingValue';
// fatal: no replacement characters in what we promise to keep; ignoreBOM: keep it, so that the scanner
// refuses it.
const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The exact text of the `settingValue` member in the body of a PUT (PutPlatformSettingRequest).
 *
 * Other members are ignored, as long as the body is valid JSON, so that a PlatformSetting that was read can be sent back.
 *
 * @throws {InvalidSettingValueError} if the body is not an object in UTF-8 JSON; if `settingValue` is missing, there twice (however its
 *   name is escaped) or null; if its text exceeds {@link MAX_VALUE_BYTES} or its nesting {@link MAX_VALUE_DEPTH}.
 * @throws {JsonSyntaxError} where the text stops being JSON or is nested too deeply.
 */
export function settingValueOf(body: Uint8Array): JsonText {
  const text = decode(body);
  // Some value nested deeper than allowed is refused wherever it stands in the body.
  const scanner = new JsonScanner(text, MAX_VALUE_DEPTH);
  scanner.skipWhitespace();
  if (text[scanner.position] !== '{') {
    scanner.skipValue();
    scanner.expectEnd();
    throw new InvalidSettingValueError('the body must be a JSON object');
  }
  const value = findMember(scanner);
  scanner.expectEnd();
  if (value === null) throw new InvalidSettingValueError(`${MEMBER} is required`);
  const fault = faultOf(value);
  if (fault !== null) throw new InvalidSettingValueError(`${MEMBER} ${fault}`);
  return value as JsonText;
}

/** Why this JSON text cannot be a setting's value; null if it can. */
export function faultOf(value: string): string | null {
  if (value === 'null') return 'must not be null';
  return Buffer.byteLength(value) > MAX_VALUE_BYTES
    ? `must not exceed ${String(MAX_VALUE_BYTES)} bytes`
    : null;
}

function decode(body: Uint8Array): string {
  try {
    return strictUtf8.decode(body);
  } catch (error) {
    throw new InvalidSettingValueError('the body is not valid UTF-8', { cause: error });
  }
}

/** Reads the object at the scanner's position to its end. */
function findMember(scanner: JsonScanner): string | null {
  const found: string[] = [];
  eachMember(scanner, (name) => {
    const text = valueText(scanner);
    if (name === MEMBER) found.push(text);
  });
  if (found.length > 1) throw new InvalidSettingValueError(`${MEMBER} must be given once`);
  return found[0] ?? null;
}

/**
 * The body of a request for many writes, `{writes: [{settingValue, …}, …]}`, parsed but for each
 * `settingValue`, which is its exact text.
 * @throws {InvalidSettingValueError} if it is not UTF-8 JSON, or an object has a member twice
 * @throws {JsonSyntaxError} where the text stops being JSON or is nested too deeply
 */
export function parseKeepingValues(body: Uint8Array): unknown {
  const scanner = new JsonScanner(decode(body), MAX_VALUE_DEPTH);
  const parsed = (): unknown => parseSmall(scanner);
  const write = (): unknown =>
    parseObject(scanner, (name) => (name === MEMBER ? valueText(scanner) : parsed()));
  const lists: Partial<Record<string, () => unknown>> = {
    writes: write,
    settings: () => parseObject(scanner, parsed),
  };
  scanner.skipWhitespace();
  const request = parseObject(scanner, (name) => {
    const parseElement = Object.hasOwn(lists, name) ? lists[name] : undefined;
    return parseElement === undefined ? parsed() : parseArray(scanner, parseElement);
  });
  scanner.expectEnd();
  return request;
}

// A body of 512 KiB with 60,000 members took 60 ms to parse. What no valid request contains is refused first.

/** Members of a request, or of one entry of its lists. */
const MAX_MEMBERS = 20;
/** Entries of a list. */
const MAX_ENTRIES = 1_000;
/** Characters of a member that is no setting's value: names and conditions. */
const MAX_SMALL_LENGTH = 8_192;

function parseSmall(scanner: JsonScanner): unknown {
  const text = valueText(scanner);
  if (text.length > MAX_SMALL_LENGTH) throw new InvalidSettingValueError('a member is too long');
  return JSON.parse(text);
}

function parseObject(scanner: JsonScanner, parseValue: (name: string) => unknown): unknown {
  if (scanner.text[scanner.position] !== '{') return parseSmall(scanner);
  const members = new Map<string, unknown>();
  eachMember(scanner, (name) => {
    if (members.has(name)) throw new InvalidSettingValueError('no member may be given twice');
    members.set(name, parseValue(name));
  });
  return Object.fromEntries(members);
}

function parseArray(scanner: JsonScanner, parseElement: () => unknown): unknown {
  if (scanner.text[scanner.position] !== '[') return parseSmall(scanner);
  const elements: unknown[] = [];
  eachPart(scanner, '[', ']', () => {
    if (elements.length === MAX_ENTRIES)
      throw new InvalidSettingValueError('a list may have 1,000 entries at most');
    elements.push(parseElement());
  });
  return elements;
}

/**
 * Calls `readValue` at the value of each member of the object at the scanner's position; it steps over the
 * value.
 */
function eachMember(scanner: JsonScanner, readValue: (name: string) => void): void {
  let members = 0;
  eachPart(scanner, '{', '}', () => {
    members += 1;
    if (members > MAX_MEMBERS) throw new InvalidSettingValueError('it has too many members');
    readValue(readMemberName(scanner));
  });
}

function eachPart(scanner: JsonScanner, opener: string, closer: string, read: () => void): void {
  scanner.expect(opener);
  scanner.skipWhitespace();
  if (scanner.accept(closer)) return;
  do {
    scanner.skipWhitespace();
    read();
    scanner.skipWhitespace();
  } while (scanner.accept(','));
  scanner.expect(closer);
}

function valueText(scanner: JsonScanner): string {
  const start = scanner.position;
  scanner.skipValue();
  return scanner.text.slice(start, scanner.position);
}

/**
 * Reads `"name" :` up to the value, and resolves the name's escapes: `"\u0073ettingValue"` names the same
 * member.
 */
function readMemberName(scanner: JsonScanner): string {
  const start = scanner.position;
  scanner.skipString();
  const name = JSON.parse(scanner.text.slice(start, scanner.position)) as string;
  scanner.skipWhitespace();
  scanner.expect(':');
  scanner.skipWhitespace();
  return name;
}
