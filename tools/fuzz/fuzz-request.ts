import type { ServiceName } from '#platform/programs.ts';

/** How a request came to be; findings and the table go by it. */
export const REQUEST_KINDS = [
  'valid',
  'nearly valid',
  'malformed body',
  'random',
  'headers',
  'framing',
  'hostile token',
] as const;
export type RequestKind = (typeof REQUEST_KINDS)[number];

/** Bytes that are not, or not wholly, an HTTP request. */
export interface RawRequest {
  readonly bytes: Buffer;
  /** Something is still owed: the connection is closed for writing, or both sides would wait. */
  readonly isUnfinished: boolean;
}

/** A request as the generator means it. */
export interface FuzzRequest {
  readonly service: ServiceName;
  readonly kind: RequestKind;
  /** What was done to it, in words. */
  readonly trick: string;
  readonly method: string;
  /** Path and query as they go on the wire. */
  readonly target: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer | null;
  /** The bytes to send instead, where HTTP itself is broken on purpose. */
  readonly raw: RawRequest | null;
  /** Statuses of which one has to be the answer, where the trick leaves no others. */
  readonly mustBe: readonly number[] | null;
}

/** The bytes of a request. Characters beyond Latin-1 go out as UTF-8, as a careless client sends them. */
export function bytesOf(request: FuzzRequest, host: string): Buffer {
  if (request.raw !== null) return request.raw.bytes;
  const { method, target, headers, body } = request;
  const lines = [`${method} ${target} HTTP/1.1`];
  if (!headers.some(([name]) => name.toLowerCase() === 'host')) lines.push(`Host: ${host}`);
  for (const [name, value] of headers) lines.push(`${name}: ${value}`);
  const isFramed = headers.some(([name]) => /^(content-length|transfer-encoding)$/i.test(name));
  if (body !== null && !isFramed) lines.push(`Content-Length: ${body.length}`);
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'utf8'), body ?? Buffer.alloc(0)]);
}
