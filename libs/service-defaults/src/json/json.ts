import { isUtf8 } from 'node:buffer';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { problems } from '../problems/problem';

/** Maximum nesting of a body. Deeper bodies are refused, so that recursive code can handle every body. */
const MAX_BODY_DEPTH = 1_024;

/** Accepts JSON bodies, and forms if `forms` is true. Any other content type gets 415. */
export function acceptBodies(instance: FastifyInstance, { forms }: { forms: boolean }): void {
  instance.removeContentTypeParser('text/plain');
  instance.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body: Buffer, done) => {
    settle(done, () => parseJsonBody(request, body));
  });
  if (!forms) return;
  instance.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'buffer' },
    (request, body: Buffer, done) => {
      settle(done, () => parseForm(request, body));
    },
  );
}

/**
 * Maximum fields of a form. Identity providers' callbacks have about six, and each further field costs far
 * more than its bytes.
 */
const MAX_FORM_FIELDS = 64;
const AMPERSAND = 0x26;

function parseForm(request: FastifyRequest, bytes: Buffer): unknown {
  const text = textOf(request, bytes);
  if (hasMoreThan(bytes, AMPERSAND, MAX_FORM_FIELDS - 1))
    throw problems.badRequest(`A form may have at most ${String(MAX_FORM_FIELDS)} fields.`);
  return Object.fromEntries(new URLSearchParams(text));
}

/** Whether `byte` occurs more than `count` times. Stops searching then. */
function hasMoreThan(bytes: Buffer, byte: number, count: number): boolean {
  let at = -1;
  for (let found = 0; found <= count; found += 1) {
    at = bytes.indexOf(byte, at + 1);
    if (at === -1) return false;
  }
  return true;
}

function settle(done: (error: Error | null, body?: unknown) => void, parse: () => unknown): void {
  let body: unknown;
  try {
    body = parse();
  } catch (error) {
    done(error as Error);
    return;
  }
  done(null, body);
}

/**
 * Parses a JSON body. An empty body counts as absent, because callers set the content type on requests
 * without a body too. Keys like `__proto__` are allowed: JSON.parse makes them own properties, schemas drop
 * unknown members, and stored values must stay as sent.
 */
function parseJsonBody(request: FastifyRequest, bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  const text = textOf(request, bytes);
  if (isDeeperThan(text, MAX_BODY_DEPTH)) throw problems.badRequest('The JSON is nested too deeply.');
  try {
    return JSON.parse(text);
  } catch (cause) {
    // The engine's message would quote the body.
    if (cause instanceof SyntaxError) throw problems.badRequest('The request body is not valid JSON.');
    throw cause;
  }
}

function textOf(request: FastifyRequest, bytes: Buffer): string {
  const encoding = request.headers['content-encoding'];
  const charset = /charset\s*=\s*"?([^\s";]+)/i.exec(request.headers['content-type'] ?? '')?.[1] ?? 'utf-8';
  if ((encoding !== undefined && encoding !== 'identity') || !/^(utf-?8|us-ascii)$/i.test(charset)) {
    throw problems.unsupportedMediaType('The body must be uncompressed UTF-8.');
  }
  if (!isUtf8(bytes)) throw problems.badRequest('The request body is not valid UTF-8.');
  return bytes.toString('utf8');
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Whether arrays and objects nest deeper than `maxDepth` levels. Iterative, because recursion over malicious
 * input ends in a RangeError.
 */
export function isDeeperThan(jsonText: string, maxDepth: number): boolean {
  // Each level has an opening and a closing character.
  if (jsonText.length <= maxDepth * 2) return false;
  let depth = 0;
  for (let at = 0; at < jsonText.length; at += 1) {
    const code = jsonText.charCodeAt(at);
    if (code === QUOTE) at = endOfString(jsonText, at);
    else if (code === 0x5b || code === 0x7b) depth += 1;
    else if (code === 0x5d || code === 0x7d) depth -= 1;
    if (depth > maxDepth) return true;
  }
  return false;
}

/** Returns the index of the quote that ends the string starting at `start`, or the length of the text. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text.charCodeAt(at) !== QUOTE) at += text.charCodeAt(at) === BACKSLASH ? 2 : 1;
  return at;
}

const JSON_TYPE = 'application/json; charset=utf-8';

/** Sends JSON text unchanged, without parsing or serialising it. */
export function sendJsonText(reply: FastifyReply, jsonText: string, status = 200): void {
  void reply.code(status).header('content-type', JSON_TYPE).send(jsonText);
}

/**
 * Responds with 200 and a bare JSON string, quotes included. Nest would send a returned string as text/plain,
 * without quotes.
 */
export function jsonStringReply(reply: FastifyReply, value: string): void {
  sendJsonText(reply, JSON.stringify(value));
}
