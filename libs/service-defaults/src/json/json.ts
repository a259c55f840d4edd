import { isUtf8 } from 'node:buffer';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { problems } from '../problems/problem';

/** Deeper bodies are refused, so that no recursive code meets them. */
const MAX_BODY_DEPTH = 1_024;

/** JSON bodies only, and forms where asked for: any other content type is answered with 415. */
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

/** Fields of a form. Providers' callbacks have about six; each further one costs far more than its bytes. */
const MAX_FORM_FIELDS = 64;
const AMPERSAND = 0x26;

function parseForm(request: FastifyRequest, bytes: Buffer): unknown {
  const text = textOf(request, bytes);
  if (hasMoreThan(bytes, AMPERSAND, MAX_FORM_FIELDS - 1))
    throw problems.badRequest(`A form may have at most ${String(MAX_FORM_FIELDS)} fields.`);
  return Object.fromEntries(new URLSearchParams(text));
}

/** Whether `byte` occurs more often than `count` times; stops looking then. */
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
 * An empty body counts as none: callers set the content type on requests without a body. Keys like
 * `__proto__` are ordinary: JSON.parse makes own properties of them, schemas drop what they do not know, and
 * values must be kept as sent.
 */
function parseJsonBody(request: FastifyRequest, bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  const text = textOf(request, bytes);
  if (isDeeperThan(text, MAX_BODY_DEPTH)) throw problems.badRequest('The JSON is nested too deeply.');
  try {
    return JSON.parse(text);
  } catch (cause) {
    // The engine's message quotes the body.
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
 * True when arrays and objects nest deeper than `maxDepth` levels. Iterative: recursion over hostile input
 * ends in a RangeError.
 */
export function isDeeperThan(jsonText: string, maxDepth: number): boolean {
  // Each level takes an opening and a closing character.
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

/** Index of the quote that ends the string beginning at `start`, or the length of the text. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text.charCodeAt(at) !== QUOTE) at += text.charCodeAt(at) === BACKSLASH ? 2 : 1;
  return at;
}

const JSON_TYPE = 'application/json; charset=utf-8';

/** Answers with JSON that already is text, exactly as it is: nothing parses or re-serialises it. */
export function sendJsonText(reply: FastifyReply, jsonText: string, status = 200): void {
  void reply.code(status).header('content-type', JSON_TYPE).send(jsonText);
}

/**
 * Answers 200 with a bare JSON string, quotes included. Needed because Nest sends a returned string as
 * text/plain, unquoted.
 */
export function jsonStringReply(reply: FastifyReply, value: string): void {
  sendJsonText(reply, JSON.stringify(value));
}
