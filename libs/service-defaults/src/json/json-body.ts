import { isUtf8 } from 'node:buffer';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { problems } from '../problems/problem-exception';
import { isDeeperThan } from './json-depth';

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
      settle(done, () => Object.fromEntries(new URLSearchParams(textOf(request, body))));
    },
  );
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
 * An empty body counts as none: callers set the content type on requests without a body. Keys like `__proto__` are
 * ordinary: JSON.parse makes own properties of them, schemas drop what they do not know, and values must be kept as sent.
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
