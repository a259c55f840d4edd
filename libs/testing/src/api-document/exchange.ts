import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';

/** One request and its answer, as they were on the wire. */
export interface Exchange {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly requestHeaders: Readonly<IncomingMessage['headers']>;
  readonly requestBody: string;
  readonly status: number;
  /** By lower-case name. */
  readonly headers: Readonly<OutgoingHttpHeaders>;
  readonly body: string;
}

/** Calls back once the whole answer has been handed to the operating system; never when the connection broke before. */
export function recordExchange(
  request: IncomingMessage,
  response: ServerResponse,
  done: (exchange: Exchange) => void,
): void {
  // Now: a server may rewrite the target.
  const { method = 'GET', url: target = '/' } = request;
  const sent = recordRequestBody(request);
  const answered = recordAnswer(response);
  response.once('finish', () => {
    const { headers, body } = answered();
    const requestBody = sent();
    const { statusCode: status } = response;
    done({ method, target, requestHeaders: request.headers, requestBody, status, headers, body });
  });
}

/** Looks at the events on their way: a listener of its own would take the data from the server. */
function recordRequestBody(request: IncomingMessage): () => string {
  const chunks: Buffer[] = [];
  const emit = request.emit.bind(request);
  request.emit = ((event: string, ...args: unknown[]) => {
    if (event === 'data') chunks.push(Buffer.from(args[0] as Buffer));
    return emit(event, ...args);
  }) as typeof request.emit;
  return () => Buffer.concat(chunks).toString('utf8');
}

function recordAnswer(response: ServerResponse): () => Pick<Exchange, 'headers' | 'body'> {
  const chunks: Buffer[] = [];
  const headers: OutgoingHttpHeaders = {};
  const keep = (chunk: unknown): void => {
    if (typeof chunk === 'string' || chunk instanceof Uint8Array) chunks.push(Buffer.from(chunk as string));
  };
  const write = response.write.bind(response) as (...args: unknown[]) => boolean;
  const end = response.end.bind(response) as (...args: unknown[]) => ServerResponse;
  const writeHead = response.writeHead.bind(response) as (...args: unknown[]) => ServerResponse;
  response.write = ((...args: unknown[]) => {
    keep(args[0]);
    return write(...args);
  }) as typeof response.write;
  response.end = ((...args: unknown[]) => {
    keep(args[0]);
    return end(...args);
  }) as typeof response.end;
  // Headers given here are not among those that the response can be asked for.
  response.writeHead = (...args: unknown[]) => {
    const given = args.at(-1);
    if (typeof given === 'object' && given !== null && !Array.isArray(given))
      Object.assign(headers, lowerCase({ ...given }));
    return writeHead(...args);
  };
  return () => ({
    headers: { ...lowerCase(response.getHeaders()), ...headers },
    body: Buffer.concat(chunks).toString('utf8'),
  });
}

function lowerCase(headers: OutgoingHttpHeaders): OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
