import type { Traffic } from '../load/traffic.ts';
import type { PlannedFault } from '../plan.ts';
import { CheckBuilder, type Check } from './check.ts';

/** Every answer was a good one or one that the fault explains, and every fault was seen to take place. */
export function auditTraffic(
  { unexpected, unexpectedCount, attempts }: Pick<Traffic, 'unexpected' | 'unexpectedCount' | 'attempts'>,
  rounds: readonly { readonly fault: PlannedFault; readonly proof: string | null }[],
): Check {
  const check = new CheckBuilder('answers: 2xx, 503, or as documented; none failed in rolling restarts');
  for (const { operation, outcome, during, detail } of unexpected)
    check.wrong(`${operation} got ${outcome} during ${during}: ${detail}`);
  if (unexpectedCount > unexpected.length) check.wrong(`${unexpectedCount} unexpected answers in all`);
  for (const { fault, proof } of rounds)
    if (proof === null) check.wrong(`round ${fault.round}: ${fault.kind} did not take place`);
  return check.done(attempts, attempts);
}
