import type { ServiceName } from '#platform/programs.ts';
import type { ByPart, Usage } from './usage.ts';

/** The cost of one piece of work: processor time in µs, and bytes of PostgreSQL's log. */
export interface Cost {
  readonly service: number;
  readonly postgresql: number;
  readonly rabbitmq: number;
  readonly walBytes: number;
}

/** Computes the cost of one of `count` pieces of work, without the idle usage of the platform. */
export function costOf(
  usage: Usage<unknown>,
  service: ServiceName,
  { idle, count }: { idle: Usage<void>; count: number },
): Cost {
  const each = (part: keyof ByPart): number =>
    ((usage.cores[part] - idle.cores[part]) * usage.seconds * 1e6) / count;
  return {
    service: each(service),
    postgresql: each('postgresql'),
    rabbitmq: each('rabbitmq'),
    walBytes: ((usage.walBytesPerSecond - idle.walBytesPerSecond) * usage.seconds) / count,
  };
}
