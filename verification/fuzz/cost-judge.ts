import { textTable } from '#platform/command-line.ts';
import { type CostlyRequest, LARGEST_PAGE } from './generate/costly.ts';

/** The measured cost of one request. */
export interface Cost {
  readonly request: CostlyRequest;
  readonly bytes: number;
  readonly status: string;
  readonly responseBytes: number;
  /** Processor time of all threads of the service, for one request. */
  readonly cpuMs: number;
}

/** The largest body that any service accepts. */
export const LARGEST_BODY_BYTES = 512 * 1_024;
const SHOWN = 10;

/**
 * The allowed processor time of a request: `floor` plus `perByte` for its size. The unit is the time that
 * `JSON.parse` takes on the same machine for a list of empty objects.
 */
interface Bound {
  /** Independent of the request's size. In parses of the largest body. */
  readonly floor: number;
  /** In parses of a body of the request's size. */
  readonly perByte: number;
}

const ANONYMOUS: Bound = { floor: 0.5, perByte: 6.5 };
/** For a request with a token, which may read and write the database. */
const WITH_TOKEN: Bound = { floor: 1, perByte: 5 };
/** For a request of the largest page, which reads 1,000 entities from the database. */
const LARGEST_PAGE_BOUND: Bound = { floor: 10, perByte: 0 };

/**
 * The allowed processor time of a request, in ms.
 * @param parseMs time of one parse of the largest body on this machine
 */
export function allowedMs({ request, bytes }: Pick<Cost, 'request' | 'bytes'>, parseMs: number): number {
  const { floor, perByte } = boundOf(request);
  return parseMs * (floor + (perByte * bytes) / LARGEST_BODY_BYTES);
}

function boundOf({ isAnonymous, trick }: CostlyRequest): Bound {
  if (isAnonymous) return ANONYMOUS;
  return trick === LARGEST_PAGE ? LARGEST_PAGE_BOUND : WITH_TOKEN;
}

/** Returns the costs that exceed their bound. */
export function excessive(costs: readonly Cost[], parseMs: number): readonly Cost[] {
  return costs.filter((cost) => cost.cpuMs > allowedMs(cost, parseMs));
}

/** A table of the ten requests that come closest to their bound, or exceed it most. */
export function costTable(costs: readonly Cost[], parseMs: number): string {
  const shareOf = (cost: Cost): number => cost.cpuMs / allowedMs(cost, parseMs);
  const worst = costs.toSorted((one, other) => shareOf(other) - shareOf(one)).slice(0, SHOWN);
  const rows = worst.map((cost) => {
    const { request, bytes, status, responseBytes, cpuMs } = cost;
    const caller = request.isAnonymous ? 'anonymous' : 'with a token';
    const path = request.target.split('?')[0]?.slice(0, 60) ?? '';
    return [
      `${(shareOf(cost) * 100).toFixed(0)} %`,
      `${cpuMs.toFixed(1)} ms`,
      `${((cpuMs * 1_000) / (bytes / 1_024)).toFixed(0)} µs/KiB`,
      `${bytes} B`,
      status,
      `${responseBytes} B`,
      `${caller}, ${request.service} ${request.method} ${path}: ${request.trick}`,
    ];
  });
  const head = ['of its bound', 'costs', 'per KiB', 'request', 'status', 'response', 'caller, and request'];
  const title = `of ${costs.length} requests, the ten that come closest to their bound of processor time:`;
  const unit = `  JSON.parse of the largest body: ${parseMs.toFixed(1)} ms`;
  return [title, ...textTable(head, rows), unit].join('\n');
}
