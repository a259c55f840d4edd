import { type ByPart, PARTS } from '#verification/bench/costs/usage.ts';

/** A figure that was computed beside the one that was measured. */
export interface Comparison {
  readonly name: string;
  readonly predicted: number;
  readonly measured: number;
  /** Predicted : measured. */
  readonly ratio: number;
  /** False: only shown. */
  readonly isJudged: boolean;
  readonly isWithin: boolean;
}

/** What is computed may be so many times too much or too little. */
export const TOLERANCE = 1.3;

/**
 * Compares the processors kept busy. RabbitMQ's are only shown: other systems publish and consume there too.
 */
export function compareCores(predicted: ByPart, measured: ByPart): Comparison[] {
  return PARTS.map((part) => {
    const ratio = predicted[part] / measured[part];
    return {
      name: NAMES[part],
      predicted: predicted[part],
      measured: measured[part],
      ratio,
      isJudged: part !== 'rabbitmq',
      // Written so that a ratio that is no number is not within.
      isWithin: ratio <= TOLERANCE && ratio >= 1 / TOLERANCE,
    };
  });
}

export const NAMES: Readonly<Record<keyof ByPart, string>> = {
  auth: 'auth-service',
  settings: 'settings-service',
  task: 'task-service',
  postgresql: 'PostgreSQL',
  rabbitmq: 'RabbitMQ',
};

/** Two significant digits, without exponent. */
export function readable(figure: number): string {
  return figure.toLocaleString('en-US', { maximumSignificantDigits: 2 });
}
