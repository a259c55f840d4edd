import { type ByPart, PARTS } from '#verification/bench/costs/usage.ts';

/** A computed figure and a measured one. */
export interface Comparison {
  readonly name: string;
  readonly predicted: number;
  readonly measured: number;
  /** Predicted divided by measured. */
  readonly ratio: number;
  /** False: the figure is only shown. */
  readonly isJudged: boolean;
  readonly isWithin: boolean;
}

/** Maximum factor between computed and measured figures, in both directions. */
export const TOLERANCE = 1.3;

/**
 * Compares busy processors. RabbitMQ's are only shown, because other systems publish and consume there too.
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
      // False for NaN.
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

/** Formats a figure with two significant digits and without an exponent. */
export function readable(figure: number): string {
  return figure.toLocaleString('en-US', { maximumSignificantDigits: 2 });
}
