import { JsonScanner } from './json-scanner';

/**
 * A valid JSON text, exactly as it was sent. It is never parsed and serialized again, which would round its
 * numbers.
 */
export type JsonText = string & { readonly __brand: 'JsonText' };

/** Maximum size of one value's text, in bytes of UTF-8. */
export const MAX_VALUE_BYTES = 256 * 1024;
/** Maximum nesting depth of arrays and objects in one value; a scalar has depth 0. */
export const MAX_VALUE_DEPTH = 512;
/**
 * Maximum size of a write's body in bytes. Twice the limit of a value, to leave room for the other members.
 */
export const MAX_BODY_BYTES = 512 * 1024;

/**
 * The body or its settingValue is not acceptable. The message can be shown to the caller; it repeats nothing
 * of the value.
 */
export class InvalidSettingValueError extends Error {
  override readonly name = 'InvalidSettingValueError';
}

const MEMBER = 'settingValue';
// `fatal` rejects invalid UTF-8 instead of storing replacement characters. `ignoreBOM` keeps a byte order
// mark, which the scanner then rejects.
const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Returns the exact text of the `settingValue` member in the body of a PUT (PutPlatformSettingRequest).
 *
 * Other members are ignored if the body is valid JSON, so that a PlatformSetting can be sent back as it was
 * read.
 *
 * @throws {InvalidSettingValueError} if the body is not a JSON object in UTF-8; if `settingValue` is missing,
 *   null, or given twice (however its name is escaped); if its text exceeds {@link MAX_VALUE_BYTES}
 * @throws {JsonSyntaxError} if the text is not JSON, or any value in it is nested deeper than {@link
 *   MAX_VALUE_DEPTH}
 */
export function settingValueOf(body: Uint8Array): JsonText {
  const text = decode(body);
  // The depth limit applies to every member of the body, not only to settingValue.
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

/** Returns why this JSON text cannot be a setting's value; null if it can. */
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

/**
 * Reads the object at the scanner's position to its end. Returns the text of its `settingValue`; null if it
 * has none.
 */
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
 * Parses the body of a request with many settings, `{writes: [{settingValue, …}, …]}`. Each `settingValue` in
 * `writes` is returned as its exact text.
 * @throws {InvalidSettingValueError} if the body is not UTF-8, an object has a member twice, or a size limit
 *   is exceeded
 * @throws {JsonSyntaxError} if the text is not JSON or is nested too deeply
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

// Parsing a body of 512 KiB with 60,000 members took 60 ms. These limits refuse such bodies before they are
// parsed.

/** Maximum members of a request, or of one entry in its lists. */
const MAX_MEMBERS = 20;
/** Maximum entries of a list. */
const MAX_ENTRIES = 1_000;
/** Maximum length of a member other than a setting's value, such as a name or a condition, in characters. */
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
 * Calls `readValue` at the value of each member of the object at the scanner's position. `readValue` must
 * advance the scanner past the value.
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
 * Reads `"name" :` up to the value and decodes the name's escapes, so that `"\u0073ettingValue"` is
 * recognised too.
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
