import { textTable } from '#platform/command-line.ts';
import { type CostlyRequest, LARGEST_PAGE } from './generate/costly.ts';

/** What one request costs its service. */
export interface Cost {
  readonly request: CostlyRequest;
  readonly bytes: number;
  readonly status: string;
  readonly responseBytes: number;
  /** Processor time of all threads of the service. */
  readonly cpuMs: number;
}

/** The largest body that a service reads. */
export const LARGEST_BODY_BYTES = 512 * 1_024;
const SHOWN = 10;

/** What a request may cost, in what `JSON.parse` takes on the same machine for a list of empty objects. */
interface Bound {
  /** Whatever its size: parses of the largest body. */
  readonly floor: number;
  /** Parses of as many bytes as it has. */
  readonly perByte: number;
}

const OF_ANYBODY: Bound = { floor: 0.5, perByte: 6.5 };
/** It may read and write the database. */
const WITH_TOKEN: Bound = { floor: 1, perByte: 5 };
/** 1,000 entities are read from the database. */
const OF_LARGEST_PAGE: Bound = { floor: 10, perByte: 0 };

/**
 * Processor time that the request may cost.
 * @param parseMs what one parse of the largest body takes on this machine
 */
export function allowedMs({ request, bytes }: Pick<Cost, 'request' | 'bytes'>, parseMs: number): number {
  const { floor, perByte } = boundOf(request);
  return parseMs * (floor + (perByte * bytes) / LARGEST_BODY_BYTES);
}

function boundOf({ isAnonymous, trick }: CostlyRequest): Bound {
  if (isAnonymous) return OF_ANYBODY;
  return trick === LARGEST_PAGE ? OF_LARGEST_PAGE : WITH_TOKEN;
}

/** Those that cost more than they may. */
export function excessive(costs: readonly Cost[], parseMs: number): readonly Cost[] {
  return costs.filter((cost) => cost.cpuMs > allowedMs(cost, parseMs));
}

/** The ten requests that come closest to what they may cost, or go beyond it, one line each. */
export function costTable(costs: readonly Cost[], parseMs: number): string {
  const shareOf = (cost: Cost): number => cost.cpuMs / allowedMs(cost, parseMs);
  const worst = costs.toSorted((one, other) => shareOf(other) - shareOf(one)).slice(0, SHOWN);
  const rows = worst.map((cost) => {
    const { request, bytes, status, responseBytes, cpuMs } = cost;
    const caller = request.isAnonymous ? 'anybody' : 'a caller';
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
  const head = ['of its bound', 'costs', 'per KiB', 'request', 'status', 'response', 'of whom, and what'];
  const title = `the ten requests that come closest to the processor time they may cost a service, of ${costs.length}:`;
  const unit = `  JSON.parse of the largest body: ${parseMs.toFixed(1)} ms`;
  return [title, ...textTable(head, rows), unit].join('\n');
}
