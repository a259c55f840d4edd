import { connect } from 'node:net';
import {
  type CataloguedDocument,
  type HostileRequest,
  type KnownValues,
  hostileRequests,
} from '#platform/hostile-catalogue.ts';
import { apiDocument } from './documents';

/** A running service that gets the catalogue of hostile requests. */
export interface HostileTarget {
  /** Name of the service, as in `docs/openapi/<service>.json`. */
  readonly service: string;
  readonly port: () => number;
  /** Returns the Authorization header of an identity with all rights. */
  readonly authorization: () => string;
  /** Values for parameters by name, instead of the document's examples. */
  readonly values?: () => KnownValues;
  /** Operations that the test cannot call, e.g. because they end its token. */
  readonly without?: readonly string[];
  /**
   * Operations of which at least one hostile request must succeed, because `values` names existing things.
   */
  readonly succeeding?: readonly string[];
}

const RESPONSE_TIMEOUT_MS = 10_000;
const CONNECTIONS = 8;
const RUN_LIMIT_MS = 300_000;

/**
 * Sends the whole catalogue of hostile requests. Each must get a response with a status below 500. The
 * fixture's `watchTraffic` compares the responses with the API document.
 */
export function describeHostileRequests({
  service,
  port,
  authorization,
  values,
  without = [],
  succeeding = [],
}: HostileTarget): void {
  describe('hostile requests', () => {
    const document = apiDocument(service);
    let catalogue: HostileRequest[] | null = null;
    const operations = Object.values(document.paths).flatMap((methods) =>
      Object.values(methods).map(({ operationId }) => operationId),
    );

    it.each(operations.filter((operationId) => !without.includes(operationId)))(
      'to %s all get a response below 500',
      async (operationId) => {
        catalogue ??= hostileRequests(document as unknown as CataloguedDocument, values?.());
        const requests = catalogue.filter((one) => one.operationId === operationId);
        expect(requests.length).toBeGreaterThan(0);
        const failures: string[] = [];
        const statuses = new Set<number>();
        const queue = requests.values();
        const work = async (): Promise<void> => {
          for (const request of queue) {
            const status = await statusOf(request, port(), authorization());
            statuses.add(status ?? 0);
            if (status === null || status >= 500)
              failures.push(`${request.method} ${request.trick} → ${String(status ?? 'no response')}`);
          }
        };
        await Promise.all(Array.from({ length: CONNECTIONS }, work));
        expect(failures).toEqual([]);
        // Some request must get past authentication. Skipped for operations with HEAD and OPTIONS requests
        // only, which most operations refuse.
        if (requests.length > 2 && requests.every(({ needsToken }) => needsToken))
          expect([...statuses].filter((status) => ![401, 405].includes(status))).not.toEqual([]);
        if (succeeding.includes(operationId))
          expect([...statuses].filter((status) => status >= 200 && status < 300)).not.toEqual([]);
      },
      RUN_LIMIT_MS,
    );
  });
}

/**
 * Sends the request over its own socket, because no client library sends such bytes. Returns the status, or
 * null without a response.
 */
function statusOf(request: HostileRequest, port: number, authorization: string): Promise<number | null> {
  const { method, target, headers, body, needsToken } = request;
  const length = body === null ? [] : [`Content-Length: ${String(Buffer.byteLength(body))}`];
  const lines = [
    `${method} ${target} HTTP/1.1`,
    'Host: 127.0.0.1',
    'Connection: close',
    ...(needsToken ? [`Authorization: ${authorization}`] : []),
    ...headers.map(([name, value]) => `${name}: ${value}`),
    ...length,
  ];
  return new Promise((resolve) => {
    let received = '';
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(`${lines.join('\r\n')}\r\n\r\n${body ?? ''}`);
    });
    socket.setTimeout(RESPONSE_TIMEOUT_MS, () => socket.destroy());
    socket.on('data', (chunk: Buffer) => (received += chunk.toString('latin1')));
    socket.on('error', () => undefined); // 'close' follows
    socket.on('close', () => {
      const status = /^(?:HTTP\/1\.1 1\d\d [^]*?\r\n\r\n)*HTTP\/1\.1 (\d{3})/.exec(received)?.[1];
      resolve(status === undefined ? null : Number(status));
    });
  });
}
